/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe_sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "le.h"

#define STACK_DEPTH_MAX 4 /* of block devices */

bool
probe_read_line(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	out[0] = '\0';
	if (!f)
		return false;
	ok = fgets(out, (int)size, f) != NULL;
	(void)fclose(f);
	out[strcspn(out, "\n")] = '\0';
	return ok;
}

static void
seen_set(struct probe_seen *s, bool known, int value, const char *text, const char *source)
{
	s->known = known;
	s->value = value;
	/* Long paths are cut. */
	(void)snprintf(s->text, sizeof(s->text), "%.*s", (int)sizeof(s->text) - 1, text);
	(void)snprintf(s->source, sizeof(s->source), "%.*s", (int)sizeof(s->source) - 1, source);
}

/* The path as people know it, below /sys. */
static const char *
sysfs_tail(const char *root, const char *path)
{
	size_t len = strlen(root);

	return strncmp(path, root, len) == 0 && path[len] == '/' ? path + len + 1 : path;
}

/* An absolute path without links that lies below sysfs; *root is that of sysfs itself. */
static bool
sysfs_resolve(const char *sysfs, const char *below, char root[PATH_MAX], char out[PATH_MAX])
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", sysfs, below) >= (int)sizeof(path))
		return false;
	return realpath(sysfs, root) && realpath(path, out) && sysfs_tail(root, out) != out;
}

/* ---- the pool's region ---- */

struct domain_row {
	const char *text;
	int domain;
};

static const struct domain_row domain_rows[] = {
	{"cpu_cache", PROFILE_MHP},
	{"memory_controller", PROFILE_DMP},
};

static void
region_domain(const char *root, const char *region, struct probe_seen *s)
{
	char path[PATH_MAX + 32];
	char line[64];

	(void)snprintf(path, sizeof(path), "%s/persistence_domain", region);
	if (!probe_read_line(path, line, sizeof(line))) {
		seen_set(s, false, 0, "not stated by the region", sysfs_tail(root, path));
		return;
	}
	seen_set(s, false, 0, line, sysfs_tail(root, path));
	for (size_t i = 0; i < sizeof(domain_rows) / sizeof(domain_rows[0]); i++) {
		if (strcmp(domain_rows[i].text, line) == 0) {
			s->known = true;
			s->value = domain_rows[i].domain;
		}
	}
}

/* Cuts device down to the regionN above it; false if there is none. */
static bool
region_above(const char *root, char *device)
{
	char *slash;

	while ((slash = strrchr(device, '/')) && (size_t)(slash - device) >= strlen(root)) {
		if (strncmp(slash, "/region", 7) == 0 && isdigit((unsigned char)slash[7]))
			return true;
		*slash = '\0';
	}
	return false;
}

static void block_domain(const char *sysfs, const char *below, unsigned depth,
			 struct probe_seen *s);

/* A stack is worth what all its parts agree on. */
static void
slaves_domain(const char *sysfs, const char *below, unsigned depth, struct probe_seen *s)
{
	char path[PATH_MAX];
	struct probe_seen part;
	struct dirent *entry;
	unsigned parts = 0;
	DIR *dir;

	seen_set(s, false, 0, "not persistent memory", below);
	if (snprintf(path, sizeof(path), "%s/%s/slaves", sysfs, below) >= (int)sizeof(path))
		return;
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/slaves/%s", below, entry->d_name) >=
		    (int)sizeof(path))
			continue;
		block_domain(sysfs, path, depth + 1, &part);
		if (parts++ == 0)
			*s = part;
		else if (!part.known || !s->known || part.value != s->value)
			seen_set(s, false, 0, "stacked devices differ", below);
	}
	(void)closedir(dir);
}

static void
block_domain(const char *sysfs, const char *below, unsigned depth, struct probe_seen *s)
{
	char root[PATH_MAX];
	char device[PATH_MAX];

	if (depth >= STACK_DEPTH_MAX || !sysfs_resolve(sysfs, below, root, device))
		seen_set(s, false, 0, "no device in sysfs", below);
	else if (region_above(root, device))
		region_domain(root, device, s);
	else
		slaves_domain(sysfs, below, depth, s);
}

void
probe_domain(const char *sysfs, bool character, dev_t dev, struct probe_seen *s)
{
	char below[64];

	(void)snprintf(below, sizeof(below), "dev/%s/%u:%u", character ? "char" : "block",
		       major(dev), minor(dev));
	block_domain(sysfs, below, 0, s);
}

/* ---- RNICs ---- */

/* Calls each for every RNIC until it returns false; the number of RNICs seen. */
static unsigned
rnic_each(const char *sysfs, bool (*each)(const char *sysfs, const char *name, void *arg),
	  void *arg)
{
	char path[PATH_MAX];
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/class/infiniband", sysfs);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (!each(sysfs, entry->d_name, arg))
			break;
	}
	(void)closedir(dir);
	return count;
}

/* An adapter whose driver has the processor store what arrives, or may: also as a hypervisor's. */
static bool
rnic_is_copied(const char *sysfs, const char *name)
{
	static const char *const drivers[] = {"hfi1", "ib_qib", "vmw_pvrdma"};
	char below[300];
	char root[PATH_MAX];
	char driver[PATH_MAX];

	(void)snprintf(below, sizeof(below), "class/infiniband/%s/device/driver", name);
	if (!sysfs_resolve(sysfs, below, root, driver))
		return false;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (strcmp(strrchr(driver, '/') + 1, drivers[i]) == 0)
			return true;
	return false;
}

/* A soft RNIC may have any name, but it never hangs on a bus. */
static bool
rnic_is_soft(const char *sysfs, const char *name)
{
	char below[300];
	char root[PATH_MAX];
	char device[PATH_MAX];

	(void)snprintf(below, sizeof(below), "class/infiniband/%s", name);
	return strncmp(name, "rxe", 3) == 0 || strncmp(name, "siw", 3) == 0 ||
	       !sysfs_resolve(sysfs, below, root, device) || strstr(device, "/virtual/") ||
	       rnic_is_copied(sysfs, name);
}

/* By node_type: "1: CA" of InfiniBand and RoCE, "4: RNIC" of iWARP; -1 for others. */
static int
rnic_class(const char *sysfs, const char *name)
{
	char path[PATH_MAX];
	char line[32];

	if (rnic_is_soft(sysfs, name))
		return PROFILE_PROVIDER_SOFTWARE;
	(void)snprintf(path, sizeof(path), "%s/class/infiniband/%s/node_type", sysfs, name);
	if (!probe_read_line(path, line, sizeof(line)))
		return -1;
	if (strncmp(line, "1:", 2) == 0)
		return PROFILE_PROVIDER_IB;
	return strncmp(line, "4:", 2) == 0 ? PROFILE_PROVIDER_IWARP : -1;
}

/* Less is promised by less: unknown, software, iWARP, InfiniBand. */
static int
rnic_rank(int class)
{
	static const int ranks[] = {
		[PROFILE_PROVIDER_SOFTWARE] = 1,
		[PROFILE_PROVIDER_IWARP] = 2,
		[PROFILE_PROVIDER_IB] = 3,
	};

	return class < 0 ? 0 : ranks[class];
}

static bool
rdma_visit(const char *sysfs, const char *name, void *arg)
{
	struct probe_seen *s = arg;
	int class = rnic_class(sysfs, name);

	if (s->source[0] && rnic_rank(class) >= rnic_rank(s->known ? s->value : -1))
		return true;
	s->known = class >= 0;
	s->value = class >= 0 ? class : 0;
	(void)snprintf(s->text, sizeof(s->text), "%.64s", name);
	(void)snprintf(s->source, sizeof(s->source), "class/infiniband/%.64s", name);
	return true;
}

void
probe_rdma(const char *sysfs, struct probe_seen *s)
{
	memset(s, 0, sizeof(*s));
	if (rnic_each(sysfs, rdma_visit, s) == 0)
		seen_set(s, false, 0, "no RDMA device", "class/infiniband");
}

/* ---- DDIO ---- */

#define PCI_CONFIG_NEED   0x188
#define PCI_VENDOR_INTEL  0x8086
#define PCI_HEADER_TYPE   0x0e
#define PCI_HEADER_BRIDGE 1

/* Intel's PERFCTRLSTS_0 and _1. */
#define PERFCTRL_0       0x180
#define PERFCTRL_0_WRITE 0x80U /* writes allocate in the cache */
#define PERFCTRL_0_SNOOP 0x08U /* no-snoop writes are honoured */
#define PERFCTRL_1_BYTE1 0x185
#define PERFCTRL_1_TPH   0x01U /* placement hints are ignored */

/* The component below pciDDDD:BB is the root port; cuts device behind it. */
static bool
root_port_of(char *device)
{
	char *p = strstr(device, "/devices/pci");
	char *end;

	if (!p)
		return false;
	p = strchr(p + strlen("/devices/pci"), '/');
	if (!p)
		return false;
	end = strchr(p + 1, '/');
	if (!end) /* the device itself is on the root bus: no port in front of it */
		return false;
	*end = '\0';
	return true;
}

static ssize_t
config_read(const char *port, uint8_t *config, size_t size)
{
	char path[PATH_MAX + 16];
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/config", port);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, config, size);
	(void)close(fd);
	return len;
}

/* Public tools disagree on the bits: only the one state that all call off is taken for it. */
static bool
config_ddio_off(const uint8_t *c, const char **text)
{
	if (get_le16(c) != PCI_VENDOR_INTEL || (c[PCI_HEADER_TYPE] & 0x7f) != PCI_HEADER_BRIDGE) {
		*text = "not an Intel root port";
		return false;
	}
	if ((c[PERFCTRL_0] & (PERFCTRL_0_WRITE | PERFCTRL_0_SNOOP)) ||
	    !(c[PERFCTRL_1_BYTE1] & PERFCTRL_1_TPH)) {
		*text = "not surely off by PERFCTRLSTS";
		return false;
	}
	*text = "off by PERFCTRLSTS";
	return true;
}

static bool
ddio_visit(const char *sysfs, const char *name, void *arg)
{
	struct probe_seen *s = arg;
	uint8_t config[PCI_CONFIG_NEED];
	const char *text = "no PCI root port";
	char below[300];
	char root[PATH_MAX];
	char device[PATH_MAX];

	(void)snprintf(below, sizeof(below), "class/infiniband/%s/device", name);
	if (!sysfs_resolve(sysfs, below, root, device) || !root_port_of(device)) {
		seen_set(s, false, 0, text, below);
		return false;
	}
	if (config_read(device, config, sizeof(config)) != (ssize_t)sizeof(config)) {
		seen_set(s, false, 0, "config space not readable: needs root",
			 sysfs_tail(root, device));
		return false;
	}
	s->known = config_ddio_off(config, &text);
	seen_set(s, s->known, s->known ? PROFILE_DDIO_OFF : 0, text, sysfs_tail(root, device));
	return s->known;
}

void
probe_ddio(const char *sysfs, bool cpu_known, struct probe_seen *s)
{
	if (!cpu_known) {
		seen_set(s, false, 0, "can't be read on this processor", "cpuinfo");
		return;
	}
	seen_set(s, false, 0, "no RDMA device", "class/infiniband");
	(void)rnic_each(sysfs, ddio_visit, s);
}
