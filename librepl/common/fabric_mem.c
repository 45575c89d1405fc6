/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that an RNIC may reach: registered, which pins it. Where that fails
 * the text says which limit is in the way.
 */
#include "fabric_ofi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "procself.h"

#define RDMA_DEVICES "/sys/class/infiniband"
#define VERBS_NODES  "/sys/class/infiniband_verbs"
#define NODE_DIR     "/dev/infiniband/"
#define MANAGER      "rdma_cm" /* the connection manager's */
#define NODE_MAX     64

bool
fab_rdma_present(void)
{
	DIR *dir = opendir(RDMA_DEVICES);
	struct dirent *entry;
	bool any = false;

	while (dir && !any && (entry = readdir(dir)))
		any = entry->d_name[0] != '.';
	if (dir)
		(void)closedir(dir);
	return any;
}

static int
node_try(const char *name, const char *module, struct err *e)
{
	char path[sizeof(NODE_DIR) + NODE_MAX];
	int fd, errnum;

	(void)snprintf(path, sizeof(path), NODE_DIR "%.*s", NODE_MAX, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		(void)close(fd);
		return 0;
	}
	errnum = errno;
	if (errnum == ENOENT)
		return err_set(
			e, REPL_E_UNREACHABLE,
			"provider verbs: there is no %s: load the kernel's module %s, or, in "
			"a container, pass " NODE_DIR " on",
			path, module);
	return err_errno(e, REPL_E_UNREACHABLE, errnum,
			 "provider verbs: user %u must be able to open %s for reading and writing",
			 (unsigned)geteuid(), path);
}

/* Of the devices' one is enough: what is wrong with it tells libfabric. */
int
ofi_nodes_try(struct err *e)
{
	int rc = node_try(MANAGER, "rdma_ucm", e);
	DIR *dir = rc ? NULL : opendir(VERBS_NODES);
	struct dirent *entry;
	bool any = false;

	while (dir && !any && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "uverbs", strlen("uverbs")) != 0)
			continue;
		rc = node_try(entry->d_name, "ib_uverbs", e);
		any = rc == 0;
	}
	if (dir)
		(void)closedir(dir);
	return rc;
}

struct pins {
	unsigned long long kib; /* pinned so far; the limit holds for all of it */
	bool free;              /* the process may go beyond the limit: CAP_IPC_LOCK */
};

#define CAP_IPC_LOCK_BIT 14

static void
pins_look(struct pins *p)
{
	FILE *f = fopen(PROCSELF "/status", "re");
	unsigned long long caps = 0;
	char line[128];

	*p = (struct pins){0};
	while (f && fgets(line, sizeof(line), f)) {
		(void)sscanf(line, "VmPin: %llu", &p->kib);
		(void)sscanf(line, "CapEff: %llx", &caps);
	}
	if (f)
		(void)fclose(f);
	p->free = (caps >> CAP_IPC_LOCK_BIT & 1) != 0;
}

/* What is pinned and what is to be, in KiB, if that is more than a share of the limit; else 0. */
static unsigned long long
mem_needed(uint64_t len, unsigned share, unsigned long long *limit)
{
	unsigned long long need = len / 1024;
	struct rlimit have;
	struct pins pins;

	if (getrlimit(RLIMIT_MEMLOCK, &have) || have.rlim_cur == RLIM_INFINITY)
		return 0;
	pins_look(&pins);
	need += pins.kib;
	*limit = have.rlim_cur / 1024;
	return pins.free || *limit / share >= need ? 0 : need;
}

int
ofi_mem_spare(uint64_t len, struct err *e)
{
	unsigned long long limit, need = mem_needed(len, 2, &limit);

	if (need == 0)
		return 0;
	return err_set(e, REPL_E_LIMIT,
		       "the limit of locked memory (RLIMIT_MEMLOCK) is %llu KiB; with the pool "
		       "%llu KiB would be locked, which may be half of it",
		       limit, need);
}

int
ofi_mem_limit(uint64_t len, struct err *e)
{
	unsigned long long limit, need = mem_needed(len, 1, &limit);

	if (need == 0)
		return 0;
	return err_set(e, REPL_E_LIMIT,
		       "the limit of locked memory (RLIMIT_MEMLOCK) is %llu KiB, RDMA needs %llu "
		       "KiB: raise memlock in limits.conf or LimitMEMLOCK of the service, or use "
		       "provider tcp",
		       limit, need);
}

static int
mem_error(int ret, size_t len, struct err *e)
{
	int rc = ret == -FI_ENOMEM ? ofi_mem_limit(len, e) : 0;
	int code = ret == -FI_EFAULT ? REPL_E_REFUSED : err_from_errno(-ret);

	return rc ? rc
		  : err_set(e, code, "registering %zu KiB with the RNIC: %s", len / 1024,
			    fi_strerror(-ret));
}

int
ofi_mem_register(struct fid_domain *domain, void *mem, size_t len, uint64_t access,
		 struct fid_mr **out, struct err *e)
{
	int ret = fi_mr_reg(domain, mem, len, access, 0, 0, 0, out, NULL);

	return ret ? mem_error(ret, len, e) : 0;
}

/* What the cache has is handed out again. A key from afar there may be none. */
bool
ofi_mem_cached(struct fid_domain *domain, void *mem, size_t len, struct fid_mr *as)
{
	struct fid_mr *mr = NULL;
	bool cached;

	if (ofi_mem_register(domain, mem, len, FI_WRITE, &mr, NULL))
		return true;
	cached = fi_mr_desc(mr) == fi_mr_desc(as);
	ofi_close(&mr->fid);
	return cached;
}

uint8_t *
ofi_mem_new(size_t len)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

void
ofi_mem_free(uint8_t *mem, size_t len)
{
	if (mem)
		(void)munmap(mem, len);
}

/* ---- may a pool be registered? ---- */

int
fab_mem_probe(const char *provider, const char *host, void *mem, size_t len, bool write,
	      struct err *e)
{
	uint64_t access = FI_REMOTE_READ | (write ? FI_REMOTE_WRITE : 0);
	struct fid_fabric *fabric = NULL;
	struct fid_domain *domain = NULL;
	struct fi_info *info = NULL;
	struct fid_mr *mr = NULL;
	int rc = ofi_info_new(provider, host, 0, FI_SOURCE, &info, e);

	if (rc)
		return rc;
	rc = fi_fabric(info->fabric_attr, &fabric, NULL);
	if (!rc)
		rc = fi_domain(fabric, info, &domain, NULL);
	if (rc)
		rc = ofi_err(e, err_from_errno(-rc), rc, "opening the RDMA device");
	else if (ofi_is_rdma(info))
		rc = ofi_mem_register(domain, mem, len, access, &mr, e);
	ofi_close(mr ? &mr->fid : NULL);
	ofi_close(domain ? &domain->fid : NULL);
	ofi_close(fabric ? &fabric->fid : NULL);
	fi_freeinfo(info);
	return rc;
}
