/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>

#include "filesystem.h"
#include "probe_sysfs.h"

/* What fstat, statx and fstatfs tell of the pool. */
struct probe_file {
	struct stat st;
	struct statfs fs;
	bool device; /* devdax */
	bool memory; /* tmpfs, ramfs */
	bool dax;
	char filesystem[FILESYSTEM_NAME_MAX];
};

struct probe_cpu {
	char vendor[32];
	char name[80];
	unsigned family;
	unsigned model;
};

static void __attribute__((format(printf, 4, 5)))
fact_add(struct probe *p, const char *name, const char *source, const char *fmt, ...)
{
	struct probe_fact *f;
	va_list ap;

	if (p->fact_count == PROBE_FACTS_MAX)
		return;
	f = &p->facts[p->fact_count++];
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	(void)snprintf(f->source, sizeof(f->source), "%s", source);
	va_start(ap, fmt);
	(void)vsnprintf(f->value, sizeof(f->value), fmt, ap);
	va_end(ap);
}

/* A field stays at its safe value; the source says why. */
static void
profile_why_unknown(struct profile *p, enum profile_field f, const char *why, const char *where)
{
	(void)snprintf(p->source[f], sizeof(p->source[f]), "%.80s: %.70s", where, why);
}

static void
profile_from_seen(struct profile *p, enum profile_field f, const struct probe_seen *s)
{
	if (s->known)
		profile_set(p, f, s->value, s->source);
	else
		profile_why_unknown(p, f, s->text, s->source);
}

/* ---- the file ---- */

static int
file_look(int fd, struct probe_file *file, struct err *e)
{
	struct statx stx;
	unsigned long magic;

	memset(file, 0, sizeof(*file));
	if (fstat(fd, &file->st) != 0)
		return err_errno(e, REPL_E_IO, errno, "probe: fstat");
	if (fstatfs(fd, &file->fs) != 0)
		return err_errno(e, REPL_E_IO, errno, "probe: fstatfs");
	filesystem_name(fd, file->filesystem, sizeof(file->filesystem));
	/* A device file lies on devtmpfs, which says it is tmpfs. */
	file->device = S_ISCHR(file->st.st_mode);
	magic = (unsigned long)file->fs.f_type & 0xffffffffUL;
	file->memory = !file->device && (magic == TMPFS_MAGIC || magic == RAMFS_MAGIC);
	if (statx(fd, "", AT_EMPTY_PATH, 0, &stx) == 0)
		file->dax = (stx.stx_attributes & STATX_ATTR_DAX) != 0;
	return REPL_OK;
}

static void
file_facts(const struct probe_file *file, struct probe *p)
{
	(void)snprintf(p->profile.filesystem, sizeof(p->profile.filesystem), "%s",
		       file->filesystem);
	fact_add(p, "filesystem", "fstatfs", "%s", p->profile.filesystem);
	if (file->device)
		return;
	fact_add(p, "dax", "statx", "%s", file->dax ? "yes" : "no");
	fact_add(p, "free-space", "fstatfs", "%llu MiB",
		 (unsigned long long)file->fs.f_bavail * (unsigned long long)file->fs.f_bsize >>
			 20);
}

/* A mapping has BYTE and CACHE_LINE only where MAP_SYNC works, that is on DAX. */
static void
probe_class(const struct probe_file *file, const enum profile_granularity *g, struct probe *p)
{
	const char *source = "libpmem2 mapping";

	if (g) {
		profile_set(&p->profile, PROFILE_F_GRANULARITY, (int)*g, source);
		fact_add(p, "store-granularity", source, "%s",
			 profile_value_name(PROFILE_F_GRANULARITY, (int)*g));
	}
	if (file->memory)
		profile_set(&p->profile, PROFILE_F_CLASS, PROFILE_CLASS_MEMORY,
			    "fstatfs: no device beneath");
	else if (!g)
		profile_why_unknown(&p->profile, PROFILE_F_CLASS, "no pool is mapped", source);
	else if (*g == PROFILE_GRAN_PAGE)
		profile_set(&p->profile, PROFILE_F_CLASS, PROFILE_CLASS_PAGE,
			    "libpmem2: granularity page");
	else
		profile_set(&p->profile, PROFILE_F_CLASS, PROFILE_CLASS_MEDIA,
			    "libpmem2: granularity finer than a page");
}

/* ---- this machine ---- */

/* "key<tabs>: value"; copies the value of the first line with that key. */
static void
cpu_line(const char *line, const char *key, char *out, size_t size)
{
	size_t len = strlen(key);
	const char *colon;

	if (strncmp(line, key, len) != 0 || out[0])
		return;
	colon = line + len + strspn(line + len, " \t");
	if (*colon != ':')
		return;
	colon += 1 + strspn(colon + 1, " ");
	(void)snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
}

static void
cpu_look(const char *sysfs, struct probe_cpu *cpu)
{
	char path[PATH_MAX];
	char family[16] = "";
	char model[16] = "";
	char line[512];
	FILE *f;

	memset(cpu, 0, sizeof(*cpu));
	(void)snprintf(path, sizeof(path), "%s/../proc/cpuinfo", sysfs);
	f = fopen(path, "re");
	if (!f)
		return;
	/* The first processor's block ends in an empty line. */
	while (fgets(line, sizeof(line), f) && line[0] != '\n') {
		cpu_line(line, "vendor_id", cpu->vendor, sizeof(cpu->vendor));
		cpu_line(line, "model name", cpu->name, sizeof(cpu->name));
		cpu_line(line, "cpu family", family, sizeof(family));
		cpu_line(line, "model", model, sizeof(model));
	}
	(void)fclose(f);
	cpu->family = (unsigned)strtoul(family, NULL, 10);
	cpu->model = (unsigned)strtoul(model, NULL, 10);
}

/*
 * Those with DDIO per root port in PERFCTRLSTS. From Ice Lake on it is the
 * BIOS's, for all ports, and AMD's cache injection shows nowhere.
 */
static bool
cpu_has_port_ddio(const struct probe_cpu *cpu)
{
	static const unsigned models[] = {
		63, /* Haswell-EP */
		79, /* Broadwell-EP */
		85, /* Skylake, Cascade Lake, Cooper Lake */
		86, /* Broadwell-DE */
	};

	if (strcmp(cpu->vendor, "GenuineIntel") != 0 || cpu->family != 6)
		return false;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		if (models[i] == cpu->model)
			return true;
	}
	return false;
}

static void
limit_fact(struct probe *p, const char *name, int resource, unsigned shift, const char *unit)
{
	struct rlimit lim;

	if (getrlimit((__rlimit_resource_t)resource, &lim) != 0)
		return;
	if (lim.rlim_cur == RLIM_INFINITY)
		fact_add(p, name, "getrlimit", "unlimited");
	else
		fact_add(p, name, "getrlimit", "%llu%s", (unsigned long long)lim.rlim_cur >> shift,
			 unit);
}

static void
machine_facts(const struct probe_cpu *cpu, struct probe *p)
{
	struct utsname uts;

	if (uname(&uts) == 0)
		fact_add(p, "kernel", "uname", "%s %s", uts.sysname, uts.release);
	fact_add(p, "cpu-vendor", "/proc/cpuinfo", "%s", cpu->vendor[0] ? cpu->vendor : "unknown");
	fact_add(p, "cpu-model", "/proc/cpuinfo", "%s (family %u, model %u)",
		 cpu->name[0] ? cpu->name : "unknown", cpu->family, cpu->model);
	fact_add(p, "page-size", "sysconf", "%ld", sysconf(_SC_PAGESIZE));
	limit_fact(p, "memlock-limit", RLIMIT_MEMLOCK, 10, " KiB");
	limit_fact(p, "nofile-limit", RLIMIT_NOFILE, 0, "");
}

/* ---- fields that the admin may state ---- */

static void __attribute__((format(printf, 3, 4)))
seen_is(struct probe_seen *s, const char *source, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s->text, sizeof(s->text), fmt, ap);
	va_end(ap);
	(void)snprintf(s->source, sizeof(s->source), "%s", source);
}

/* Not to put receive buffers into persistent memory, or to use no flush, is a choice, no claim. */
static bool
contradicts(enum profile_field f, int stated, const struct probe_seen *s)
{
	bool choice = (f == PROFILE_F_RQWRB && stated == PROFILE_RQWRB_DRAM) ||
		      (f == PROFILE_F_FLUSH && stated == PROFILE_FLUSH_NO);

	return s->known && stated != s->value && !choice;
}

int
probe_field(const struct conf *c, enum profile_field f, const struct probe_seen *s, struct probe *p,
	    struct err *e)
{
	const struct conf_stated *stated = &c->stated[f];
	const char *name = profile_field_name(f);
	const char *value = profile_value_name(f, stated->value);
	char source[PROFILE_SOURCE_MAX];

	if (!stated->given) {
		profile_from_seen(&p->profile, f, s);
		return REPL_OK;
	}
	(void)snprintf(source, sizeof(source), "repld.conf: %s", name);
	if (contradicts(f, stated->value, s)) {
		if (!stated->trust) {
			(void)err_set(e, REPL_E_REFUSED,
				      "repld.conf: key '%s': %s contradicts the evidence, '%s' "
				      "(%s): take the key out, or write '%s = %s trust-me' if the "
				      "evidence is known to be wrong",
				      name, value, s->text, s->source, name, value);
			(void)err_because(e, REPL_REASON_CONFIG);
			return REPL_E_REFUSED;
		}
		(void)snprintf(source, sizeof(source),
			       "repld.conf: %s, against %.60s (%.40s), trust-me", name, s->source,
			       s->text);
	}
	profile_set(&p->profile, f, stated->value, source);
	return REPL_OK;
}

static int
probe_domain_field(const struct conf *c, const struct probe_file *file, const char *sysfs,
		   struct probe *p, struct err *e)
{
	struct probe_seen seen;

	probe_domain(sysfs, file->device, file->device ? file->st.st_rdev : file->st.st_dev, &seen);
	fact_add(p, "region-persistence-domain", seen.source, "%s", seen.text);
	return probe_field(c, PROFILE_F_DOMAIN, &seen, p, e);
}

bool
probe_caches_survive(const struct conf *c, int fd, const char *sysfs)
{
	const struct conf_stated *stated = &c->stated[PROFILE_F_DOMAIN];
	bool device, said = stated->given && stated->value != PROFILE_DMP;
	struct probe_seen seen;
	struct stat st;

	if (stated->given && stated->trust)
		return said;
	if (fstat(fd, &st) != 0)
		return false;
	device = S_ISCHR(st.st_mode);
	probe_domain(sysfs, device, device ? st.st_rdev : st.st_dev, &seen);
	if (stated->given && !said)
		return false;
	return seen.known ? seen.value != PROFILE_DMP : said;
}

static int
probe_ddio_field(const struct conf *c, const struct probe_cpu *cpu, bool verbs, const char *sysfs,
		 struct probe *p, struct err *e)
{
	struct probe_seen seen = {.known = false};

	if (verbs) {
		probe_ddio(sysfs, cpu_has_port_ddio(cpu), &seen);
		fact_add(p, "ddio", seen.source, "%s", seen.text);
	} else {
		seen_is(&seen, "not an RDMA provider", "of no account");
	}
	return probe_field(c, PROFILE_F_DDIO, &seen, p, e);
}

static int
probe_provider_field(const struct conf *c, const char *provider, bool verbs, const char *sysfs,
		     struct probe *p, struct err *e)
{
	struct probe_seen seen = {.known = false};

	(void)snprintf(p->profile.provider_name, sizeof(p->profile.provider_name), "%s", provider);
	fact_add(p, "provider", "libfabric", "%s", provider);
	if (verbs) {
		probe_rdma(sysfs, &seen);
		fact_add(p, "rdma-device", seen.source, "%s", seen.text);
	} else if (strcmp(provider, "tcp") == 0) {
		seen.known = true;
		seen.value = PROFILE_PROVIDER_SOFTWARE;
		seen_is(&seen, "libfabric: tcp stores by the CPU", "%s", provider);
	} else {
		seen_is(&seen, "libfabric", "'%.40s' is not known", provider);
	}
	return probe_field(c, PROFILE_F_PROVIDER, &seen, p, e);
}

/* A ring of receive buffers is in a file beside the pool, and as durable as that. */
static int
probe_rqwrb_field(const struct conf *c, const struct probe_file *file, struct probe *p,
		  struct err *e)
{
	const struct profile *found = &p->profile;
	struct probe_seen seen = {.known = found->known[PROFILE_F_CLASS]};

	if (!seen.known) {
		seen_is(&seen, "repld", "no pool is mapped");
	} else if (file->device) {
		seen.value = PROFILE_RQWRB_DRAM;
		seen_is(&seen, "repld: the pool's sidecar is not on its device", "dram");
	} else if (found->value[PROFILE_F_CLASS] == PROFILE_CLASS_PAGE) {
		seen.value = PROFILE_RQWRB_DRAM;
		seen_is(&seen, "repld: beside the pool is only page cache", "dram");
	} else {
		seen.value = PROFILE_RQWRB_PM;
		seen_is(&seen, "repld: a receive ring can be kept beside the pool", "pm");
	}
	return probe_field(c, PROFILE_F_RQWRB, &seen, p, e);
}

int
probe_run(const struct conf *c, int fd, const enum profile_granularity *granularity,
	  const char *provider, const char *sysfs, struct probe *out, struct err *e)
{
	bool verbs = strncmp(provider, "verbs", strlen("verbs")) == 0;
	struct probe_file file;
	struct probe_cpu cpu;
	int rc;

	memset(out, 0, sizeof(*out));
	profile_init(&out->profile);
	rc = file_look(fd, &file, e);
	if (rc != REPL_OK)
		return rc;
	cpu_look(sysfs, &cpu);
	machine_facts(&cpu, out);
	file_facts(&file, out);
	probe_class(&file, granularity, out);
	rc = probe_domain_field(c, &file, sysfs, out, e);
	if (!rc)
		rc = probe_provider_field(c, provider, verbs, sysfs, out, e);
	if (!rc)
		rc = probe_ddio_field(c, &cpu, verbs, sysfs, out, e);
	if (!rc)
		rc = probe_rqwrb_field(c, &file, out, e);
	return rc;
}
