/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric, loaded when the first data lane is opened and not with the program.
 *
 * Debian's libfabric brings the libraries of all its providers along. Two of
 * them (psm, psm2) sleep for 100 ms each while they are loaded, and one
 * (libinfinipath) takes SIGINT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS and SIGILL
 * with a handler that calls exit(). So a program that is linked with libfabric
 * starts 200 ms later and hangs or dies by signals that were none of libfabric's
 * business, even if it never opens a lane. Loading it here makes it possible to
 * put the dispositions back.
 *
 * The functions of libfabric that are no inline ones of its headers are defined
 * below, hidden, and pass calls on.
 */
#include "fabric_ofi.h"
#include "thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define OFI_LIBRARY "libfabric.so.1"

/* What a link against the library of these headers would bind to. */
#if FI_MAJOR_VERSION != 1 || FI_MINOR_VERSION > 18
#error "look up the versions of the symbols below in this libfabric"
#endif

/* The functions are set by the ofi_load() that succeeds, constant after. */
static struct {
	pthread_mutex_t lock;
	bool loaded;
	atomic_uint beginning; /* threads that load it, or are in fi_getinfo() */
	atomic_bool begun;
	bool cut_off; /* this process was forked amid that */
	__typeof__(fi_getinfo) *getinfo;
	__typeof__(fi_freeinfo) *freeinfo;
	__typeof__(fi_dupinfo) *dupinfo;
	__typeof__(fi_fabric) *fabric;
	__typeof__(fi_strerror) *strerror;
	__typeof__(fi_version) *version;
} ofi = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool
look_up(void *lib, const char *name, const char *version, void *function)
{
	void *p = dlvsym(lib, name, version);

	/* A pointer to data and one to a function are the same to dlsym(). */
	memcpy(function, &p, sizeof(p));
	return p != NULL;
}

static bool
look_up_all(void *lib)
{
	return look_up(lib, "fi_getinfo", "FABRIC_1.3", &ofi.getinfo) &&
	       look_up(lib, "fi_freeinfo", "FABRIC_1.3", &ofi.freeinfo) &&
	       look_up(lib, "fi_dupinfo", "FABRIC_1.3", &ofi.dupinfo) &&
	       look_up(lib, "fi_fabric", "FABRIC_1.1", &ofi.fabric) &&
	       look_up(lib, "fi_strerror", "FABRIC_1.0", &ofi.strerror) &&
	       look_up(lib, "fi_version", "FABRIC_1.0", &ofi.version);
}

/* True if the handler is one of a library that libfabric brings along. */
static bool
is_infinipath(const struct sigaction *sa)
{
	Dl_info info;
	void *address;

	memcpy(&address, &sa->sa_sigaction, sizeof(address));
	return address && dladdr(address, &info) && info.dli_fname &&
	       strstr(info.dli_fname, "infinipath") != NULL;
}

/* Not what another thread of the program has set up in the meantime. */
static void
dispositions_put_back(const struct sigaction *old)
{
	struct sigaction now;

	for (int i = 1; i < NSIG; i++)
		if (sigaction(i, NULL, &now) == 0 && is_infinipath(&now))
			(void)sigaction(i, &old[i], NULL);
}

/* What libinfinipath looks for before it takes signals; its value does not matter. */
#define NO_HANDLERS "IPATH_NO_BACKTRACE"

void
fab_leave_signals(void)
{
	(void)setenv(NO_HANDLERS, "1", 0);
}

/*
 * Signals wait until the dispositions are back: for this thread. Where there is another one, as
 * that which waits for a login meanwhile, it may be ended by that exit() amid the loading. Our own
 * programs do not let it come to that: fab_leave_signals(). The environment of others is theirs.
 */
static int
load(struct err *e)
{
	struct sigaction old[NSIG] = {0};
	const char *why;
	sigset_t all, mask;
	int errnum;
	void *lib;

	/* It loads what lies there, whoever has said so. */
	if (getauxval(AT_SECURE) && getenv("FI_PROVIDER_PATH"))
		return err_set(e, REPL_E_REFUSED,
			       "FI_PROVIDER_PATH is set for a program with other rights than its "
			       "caller's, in which libfabric would load what that names: take it "
			       "out of the environment");
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, NULL, &old[i]);
	/* Never unloaded: providers leave threads and exit handlers behind. */
	errno = 0;
	lib = dlopen(OFI_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	errnum = errno;
	dispositions_put_back(old);
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	ofi.loaded = lib && look_up_all(lib);
	if (ofi.loaded)
		return 0;
	why = dlerror();
	if (!lib && (errnum == EMFILE || errnum == ENFILE))
		return err_set(e, REPL_E_LIMIT,
			       OFI_LIBRARY ": too many open files: raise the limit, RLIMIT_NOFILE");
	return err_set(e, REPL_E_FAILED,
		       "cannot load " OFI_LIBRARY ", is libfabric installed, and is there memory "
		       "for it (RLIMIT_AS, RLIMIT_DATA)? %s",
		       why ? why : "unknown");
}

/*
 * In the child of a fork nobody goes on with what another thread was about. A library that was
 * being loaded is there in part, which dlopen() gives out as if it were whole; and libfabric sets
 * itself up in the first fi_getinfo(), with a lock of its own.
 */
static void
load_fork_child(void)
{
	(void)pthread_mutex_init(&ofi.lock, NULL);
	if (atomic_exchange(&ofi.beginning, 0) && !atomic_load(&ofi.begun))
		ofi.cut_off = true;
}

static void
load_init(void)
{
	(void)pthread_atfork(NULL, NULL, load_fork_child);
}

int
ofi_load(struct err *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc;

	(void)pthread_once(&once, load_init);
	if (ofi.cut_off)
		return err_set(e, REPL_E_FAILED,
			       "this process was forked while another thread opened its first "
			       "replica: " OFI_LIBRARY " can't be used in it; fork before that, or "
			       "when it is open");
	/* What was in the way once, as too few descriptors, need not be so again. */
	(void)pthread_mutex_lock(&ofi.lock);
	(void)atomic_fetch_add(&ofi.beginning, 1);
	rc = ofi.loaded ? 0 : load(e);
	(void)atomic_fetch_sub(&ofi.beginning, 1);
	(void)pthread_mutex_unlock(&ofi.lock);
	return rc;
}

/* ---- what comes with it ---- */

#define VERBS_LIBRARY "libibverbs.so.1"
#define FORK_UNNEEDED 2 /* IBV_FORK_UNNEEDED; the function is of rdma-core 35 and later */

typedef int fork_status_fn(void);

/*
 * Looked up once: amid an opening whoever asks the linker waits for who loads another library. When
 * libfabric is set up, what it brings along is there, which need not have this one.
 */
static fork_status_fn *
fork_status_look_up(void)
{
	static fork_status_fn *_Atomic known;
	static atomic_bool looked;
	bool last = atomic_load(&ofi.begun);
	void *lib = looked ? NULL : dlopen(VERBS_LIBRARY, RTLD_NOW | RTLD_NOLOAD);

	if (lib)
		known = (fork_status_fn *)(uintptr_t)dlsym(lib, "ibv_is_fork_initialized");
	if (lib || last)
		looked = true;
	return known;
}

bool
ofi_fork_safe(void)
{
	fork_status_fn *status = fork_status_look_up();

	return status && status() == FORK_UNNEEDED;
}

/* ---- what the headers declare ---- */

int
fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	   const struct fi_info *hints, struct fi_info **info)
{
	int rc;

	(void)atomic_fetch_add(&ofi.beginning, 1);
	rc = ofi.getinfo(version, node, service, flags, hints, info);
	atomic_store(&ofi.begun, true);
	(void)atomic_fetch_sub(&ofi.beginning, 1);
	return rc;
}

void
fi_freeinfo(struct fi_info *info)
{
	ofi.freeinfo(info);
}

struct fi_info *
fi_dupinfo(const struct fi_info *info)
{
	return ofi.dupinfo(info);
}

int
fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return ofi.fabric(attr, fabric, context);
}

const char *
fi_strerror(int errnum)
{
	return ofi.strerror(errnum);
}

uint32_t
fi_version(void)
{
	return ofi.version();
}

/* ---- done early where it takes time ---- */

struct fab_warm {
	pthread_t thread;
};

static void *
warm_main(void *arg)
{
	(void)fab_provider_at("tcp", "127.0.0.1", NULL);
	(void)fork_status_look_up();
	return arg;
}

struct fab_warm *
fab_warm_new(void)
{
	struct fab_warm *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	if (thread_start(&w->thread, warm_main, NULL)) {
		free(w);
		return NULL;
	}
	return w;
}

void
fab_warm_free(struct fab_warm *w)
{
	if (!w)
		return;
	(void)pthread_join(w->thread, NULL);
	free(w);
}
