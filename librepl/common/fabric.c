/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric_ofi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define OFI_API FI_VERSION(1, 17)
#define OFI_NET "net"

/* One lane, and what drivers pin for their queues. */
#define MEMLOCK_LEAST (8U << 20)

static void
hints_fill(struct fi_info *hints)
{
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
	hints->addr_format = FI_FORMAT_UNSPEC;
	/*
	 * No FI_MR_BASIC: with it tcp hands out keys 1, 2, ...; without it our
	 * own random key is honoured and a region is addressed by offset.
	 */
	hints->domain_attr->mr_mode = 0;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order =
		FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_RAS;
	hints->rx_attr->msg_order =
		FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_RAS;
}

/*
 * The RNIC's own rules. Lanes of different threads share the device below the
 * domains, and verbs is safe for that only if it is asked for.
 */
static void
hints_fill_verbs(struct fi_info *hints, const char *host)
{
	/* Without a word verbs takes every address for one of IPv4. */
	hints->addr_format = strchr(host, ':') ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->control_progress = FI_PROGRESS_UNSPEC;
	hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
	hints->tx_attr->inject_size = FAB_REPLY_MAX;
}

static int
info_get(const char *name, const char *host, const char *service, uint64_t flags,
	 struct fi_info **out)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints_fill(hints);
	if (strcmp(name, "verbs") == 0)
		hints_fill_verbs(hints, host);
	hints->fabric_attr->prov_name = strdup(name);
	ret = hints->fabric_attr->prov_name
		      ? fi_getinfo(OFI_API, host, service, flags | FI_NUMERICHOST, hints, out)
		      : -FI_ENOMEM;
	fi_freeinfo(hints);
	return ret;
}

/*
 * What libfabric 1.17 calls net is the tcp of 1.18 and later, and speaks the
 * same on the wire. The tcp of 1.17 pays a write and a read on a pipe for every
 * completion, whatever wait object is asked for: a fifth more for a small
 * message. The price of net is a flaw: it loses 48 bytes of memory for every
 * endpoint that was opened (the entries in its completion queues' lists).
 */
static int
info_get_tcp(const char *host, const char *service, uint64_t flags, struct fi_info **out)
{
	if (FI_VERSION_LT(fi_version(), FI_VERSION(1, 18)) &&
	    info_get(OFI_NET, host, service, flags, out) == 0)
		return 0;
	return info_get("tcp", host, service, flags, out);
}

/* No provider is what libfabric says, too, when it could not open the device. */
static int
no_verbs(const char *host, struct err *e)
{
	struct rlimit lock;
	int rc;

	if (!fab_rdma_present())
		return err_set(e, REPL_E_UNREACHABLE, "provider verbs: no RDMA device is here");
	rc = ofi_nodes_try(e);
	if (rc)
		return rc;
	if (getrlimit(RLIMIT_MEMLOCK, &lock) || lock.rlim_cur >= MEMLOCK_LEAST)
		return err_set(e, REPL_E_UNREACHABLE,
			       "provider verbs: no RDMA device that can be used has or reaches "
			       "address %s",
			       host);
	return err_set(e, REPL_E_LIMIT,
		       "provider verbs: the RDMA device can't be opened; the limit of locked "
		       "memory (RLIMIT_MEMLOCK) is %llu KiB, at least %u KiB are needed: raise "
		       "memlock in limits.conf or LimitMEMLOCK of the service",
		       (unsigned long long)lock.rlim_cur / 1024, MEMLOCK_LEAST / 1024);
}

int
ofi_info_new(const char *provider, const char *host, uint16_t port, uint64_t flags,
	     struct fi_info **out, struct err *e)
{
	bool verbs = strcmp(provider, "verbs") == 0;
	char service[8];
	int ret;

	*out = NULL;
	if (!verbs && strcmp(provider, "tcp") != 0)
		return err_set(e, REPL_E_INVAL,
			       "provider '%s' is not supported here; use tcp or verbs", provider);
	/*
	 * Looked at before libfabric is loaded for nothing. A loopback address would
	 * be taken for that of any device, and then nobody can connect to it.
	 */
	if (verbs && (!fab_rdma_present() || strncmp(host, "127.", 4) == 0 || !strcmp(host, "::1")))
		return no_verbs(host, e);
	ret = ofi_load(e);
	if (ret)
		return ret;
	(void)snprintf(service, sizeof(service), "%u", (unsigned)port);
	ret = verbs ? info_get("verbs", host, service, flags, out)
		    : info_get_tcp(host, service, flags, out);
	if (ret == -FI_ENOMEM)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	if (ret == -FI_ENODATA && verbs)
		return no_verbs(host, e);
	if (ret == -FI_ENODATA)
		return err_set(e, REPL_E_UNREACHABLE,
			       "libfabric has no provider '%s' for address %s", provider, host);
	if (ret)
		return ofi_err(e, REPL_E_UNREACHABLE, ret, host);
	return 0;
}

bool
ofi_is_rdma(const struct fi_info *info)
{
	return (info->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
}

int
ofi_err(struct err *e, int code, long ret, const char *what)
{
	if (ret == -FI_EMFILE)
		return err_set(e, REPL_E_LIMIT,
			       "%s: too many open files: raise the limit, RLIMIT_NOFILE", what);
	return err_set(e, code, "%s: %s", what, fi_strerror((int)-ret));
}

void
ofi_close(struct fid *fid)
{
	if (fid)
		(void)fi_close(fid);
}

enum ofi_imm
ofi_imm_of(const struct fi_info *info)
{
	/* verbs sets the mode of each device, and this to 0 where there are none: of iWARP. */
	if (info->domain_attr->cq_data_size == 0)
		return OFI_IMM_NONE;
	if (info->mode & FI_RX_CQ_DATA)
		return OFI_IMM_RECV;
	return info->domain_attr->cq_data_size >= sizeof(uint64_t) ? OFI_IMM_WIDE : OFI_IMM_NONE;
}

static int
queue_open(struct fid_domain *domain, size_t size, enum fi_wait_obj wait, struct fid_cq **cq,
	   struct err *e)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = wait, .size = size};
	int ret = fi_cq_open(domain, &attr, cq, NULL);

	return ret ? ofi_err(e, err_from_errno(-ret), ret, "fi_cq_open") : 0;
}

int
ofi_queues_open(const struct fi_info *info, struct fid_domain *domain, size_t rx_size,
		size_t tx_size, struct ofi_queues *q, struct err *e)
{
	bool net = strcmp(info->fabric_attr->prov_name, OFI_NET) == 0;
	int rc;

	q->rdma = ofi_is_rdma(info);
	if (q->rdma) {
		rc = queue_open(domain, rx_size, FI_WAIT_FD, &q->rx, e);
		return rc ? rc : queue_open(domain, tx_size, FI_WAIT_FD, &q->tx, e);
	}
	rc = queue_open(domain, rx_size + tx_size, net ? FI_WAIT_NONE : FI_WAIT_FD, &q->rx, e);
	q->tx = q->wake = q->rx;
	return rc || !net ? rc : queue_open(domain, 1, FI_WAIT_FD, &q->wake, e);
}

void
ofi_queues_close(struct ofi_queues *q)
{
	ofi_close(q->rx ? &q->rx->fid : NULL);
	if (q->tx != q->rx)
		ofi_close(q->tx ? &q->tx->fid : NULL);
	if (q->wake != q->rx)
		ofi_close(q->wake ? &q->wake->fid : NULL);
}

int
ofi_queues_bind(struct fid_ep *ep, const struct ofi_queues *q)
{
	/* A message is answered; only RMA asks for a completion of its own. */
	int ret = fi_ep_bind(ep, &q->tx->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);

	return ret ? ret : fi_ep_bind(ep, &q->rx->fid, FI_RECV);
}

int
ofi_wait_fd(struct fid *fid)
{
	int fd = -1;

	if (fi_control(fid, FI_GETWAIT, &fd))
		return -1;
	return fd;
}

bool
ofi_queues_wait(struct fid_fabric *fabric, const struct ofi_queues *q, struct fid_eq *eq, bool tx,
		struct pollfd *pfd, nfds_t *n)
{
	struct fid *fids[2];
	int count = 0;

	fids[count++] = q->rdma ? &q->rx->fid : &q->wake->fid;
	if (tx && q->rdma)
		fids[count++] = &q->tx->fid;
	if (fi_trywait(fabric, fids, count) != 0)
		return false;
	for (int i = 0; i < count; i++)
		pfd[(*n)++] = (struct pollfd){.fd = ofi_wait_fd(fids[i]), .events = POLLIN};
	if (q->rdma)
		pfd[(*n)++] = (struct pollfd){.fd = ofi_wait_fd(&eq->fid), .events = POLLIN};
	return true;
}

const char *
ofi_fault_text(struct fid_cq *cq, const struct fi_cq_err_entry *fault)
{
	const char *text = NULL;

	/* Of an RNIC the provider's number says more than "input/output error". */
	if (fault->err == FI_EIO && fault->prov_errno > 0)
		text = fi_cq_strerror(cq, fault->prov_errno, fault->err_data, NULL, 0);
	return text ? text : fi_strerror(fault->err);
}

bool
fab_provider_at(const char *provider, const char *host, struct err *e)
{
	struct fi_info *info = NULL;

	if (ofi_info_new(provider, host, 0, FI_SOURCE, &info, e))
		return false;
	fi_freeinfo(info);
	return true;
}
