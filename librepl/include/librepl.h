/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librepl.h - replicate a range of persistent memory to remote hosts.
 *
 * A program maps its pool (any contiguous mapping), opens a replica set for it
 * and from then on calls repl_persist() where it would have called
 * pmem_persist(): the call returns when the range is durable on every target.
 *
 * Units.    Offsets and lengths are bytes, offsets count from the start of the
 *           mapped range. Times are milliseconds unless the name says _us/_ns.
 * Errors.   Functions return 0 or a negative value of enum repl_status and
 *           never print, exit, abort or change a signal disposition. The text
 *           of the last error of the calling thread is repl_errormsg().
 * Threads.  A config object belongs to one thread at a time. A handle may be
 *           used by any number of threads; a lane by one thread at a time.
 *           Functions that name a lane return REPL_E_BUSY if a second thread
 *           is inside the same lane, or the library for longer than op-timeout:
 *           nothing was done, call again. Also if drains of other lanes with the
 *           same bytes take that long: nothing was drained, and of what was to be
 *           flushed or persisted some may not be flushed, call again. No
 *           function is a cancellation point.
 * Deadlines. Every function returns within the deadline that the config gives
 *           for its kind of call, but for what the local disk takes to sync a
 *           few records beside the pool when a replica is lost.
 * Fork.     A handle does not survive fork(): in the child all calls on it, and on
 *           its logs, are REPL_E_INVAL and do nothing, and the child should call
 *           repl_abandon() once.
 */
#ifndef LIBREPL_H
#define LIBREPL_H 1

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define REPL_MUST_CHECK __attribute__((warn_unused_result))
#define REPL_API        __attribute__((visibility("default")))
#else
#define REPL_MUST_CHECK
#define REPL_API
#endif

#define REPL_VERSION_MAJOR 0
#define REPL_VERSION_MINOR 1

/* Limits that a caller may rely on. */
#define REPL_TARGETS_MAX 16
#define REPL_LANES_MAX   64

/*
 * Status codes: X(name, value, exit status of replctl, text).
 * Values are part of the ABI and are never reused.
 */
#define REPL_STATUS_TABLE(X)                                                                       \
	X(REPL_OK, 0, 0, "success")                                                                \
	X(REPL_E_FAILED, -1, 1, "operation failed")                                                \
	X(REPL_E_INVAL, -2, 2, "invalid argument")                                                 \
	X(REPL_E_NOMEM, -3, 1, "out of memory")                                                    \
	X(REPL_E_NOT_FOUND, -4, 3, "not found")                                                    \
	X(REPL_E_EXISTS, -5, 4, "already exists")                                                  \
	X(REPL_E_BUSY, -6, 4, "in use")                                                            \
	X(REPL_E_REFUSED, -7, 4, "refused for safety")                                             \
	X(REPL_E_DEGRADED, -8, 5, "replica degraded")                                              \
	X(REPL_E_DIVERGED, -9, 6, "replica diverged")                                              \
	X(REPL_E_UNREACHABLE, -10, 7, "target unreachable")                                        \
	X(REPL_E_AUTH, -11, 8, "authentication failed")                                            \
	X(REPL_E_TIMEOUT, -12, 9, "timed out")                                                     \
	X(REPL_E_CONFIG, -13, 10, "configuration error")                                           \
	X(REPL_E_PROTOCOL, -14, 1, "protocol error")                                               \
	X(REPL_E_VERSION, -15, 1, "version not supported")                                         \
	X(REPL_E_LIMIT, -16, 1, "resource limit too low")                                          \
	X(REPL_E_NOSPC, -17, 1, "no space left")                                                   \
	X(REPL_E_CORRUPT, -18, 1, "metadata damaged")                                              \
	X(REPL_E_IO, -19, 1, "input/output error")                                                 \
	X(REPL_E_LOST, -20, 7, "connection to the replica lost")                                   \
	X(REPL_E_DIFFER, -21, 1, "contents differ")

enum repl_status {
#define REPL_STATUS_ENUM(name, value, exit_status, text) name = value,
	REPL_STATUS_TABLE(REPL_STATUS_ENUM)
#undef REPL_STATUS_ENUM
};

/* The fixed English text of a status; never NULL, also for unknown values. */
REPL_API const char *repl_strstatus(int status);

/*
 * The text of the last error in the calling thread; "" when there was none.
 * Valid until the thread's next call into the library.
 */
REPL_API const char *repl_errormsg(void);

/* The library's version as "MAJOR.MINOR.PATCH". */
REPL_API const char *repl_version(void);

/* ---- configuration: librepl_config(3) ---------------------------------- */

struct repl_config;

/* What happens to a call in flight, and to later ones, when a replica is lost. */
enum repl_on_loss {
	REPL_ON_LOSS_DEGRADE = 0, /* go on without it; repl_stat() shows it; default */
	REPL_ON_LOSS_FAIL = 1,    /* REPL_E_LOST until it is back */
	REPL_ON_LOSS_BLOCK = 2,   /* wait for it, at most block-timeout: then REPL_E_LOST */
};

/* A new object with the defaults of repl.conf(5). Free with repl_config_free(). */
REPL_API int repl_config_new(struct repl_config **cfg) REPL_MUST_CHECK;
REPL_API void repl_config_free(struct repl_config *cfg);

/*
 * Read an INI file, see repl.conf(5). path NULL means the file named by the
 * environment variable REPL_CONFIG; if that is unset or empty, or the process
 * runs set-user-ID, nothing is read and 0 is returned. Targets are added to those
 * that cfg has. An unknown key or a bad value is REPL_E_CONFIG, the text names
 * file, line and key, and cfg is as it was.
 */
REPL_API int repl_config_load(struct repl_config *cfg, const char *path) REPL_MUST_CHECK;

/* Add a target "[user@]host[:ssh-port]/pool"; at most REPL_TARGETS_MAX, none twice. */
REPL_API int repl_config_add_target(struct repl_config *cfg, const char *target) REPL_MUST_CHECK;

/*
 * Set one key of repl.conf(5) by name, e.g. ("lanes", "8"), ("on-loss",
 * "fail"), ("op-timeout", "2000"), ("identity", "/home/a/.ssh/id_repl").
 * One setter by name keeps file, environment and program in step. "target" adds
 * one. An unknown key or a bad value is REPL_E_CONFIG.
 */
REPL_API int repl_config_set(struct repl_config *cfg, const char *key,
			     const char *value) REPL_MUST_CHECK;

/* ---- replica set: librepl_open(3) --------------------------------------- */

struct repl;

#define REPL_OPEN_CREATE     1U /* create the pool on a target where it is absent */
#define REPL_OPEN_NO_COMPARE 2U /* caller knows that the replicas equal the range */
#define REPL_OPEN_SPARSE     4U /* one that is created takes space as it is written */

/*
 * Open the replicas of cfg for the size bytes mapped at addr. That is a multiple of
 * 4096; so is the size where a target has the pool in the files of a set, else it may be
 * any. In a file it begins with the first byte, unless pool-file names another. On success each
 * replica equals the range: a new one is filled, an older one of the same lineage gets what
 * differs (by block hashes). A replica that is newer, diverged or
 * unrelated is REPL_E_DIVERGED and nothing is changed. The range must stay mapped until
 * repl_close(). cfg is copied. flags is an OR of REPL_OPEN_*, unknown bits are REPL_E_INVAL.
 */
REPL_API int repl_open(const struct repl_config *cfg, void *addr, size_t size, unsigned flags,
		       struct repl **out) REPL_MUST_CHECK;

/*
 * Close and free, whatever is returned; NULL is allowed. What was flushed and
 * not drained may or may not reach the replicas. Takes at most close-timeout,
 * and op-timeout more if the loss of a replica is being recorded at that moment.
 * In the child of a fork() it does what repl_abandon() does, and returns REPL_E_INVAL.
 */
REPL_API int repl_close(struct repl *r);

/*
 * In the child of a fork(), of a handle of the parent's: closes the child's
 * descriptors of the pool's lock and of the control channels, so that the
 * parent's end is seen as such, and nothing else; the parent goes on undisturbed.
 * The child's memory of the handle is given up. NULL is allowed. Call it at
 * once, while the child has a single thread.
 */
REPL_API void repl_abandon(struct repl *r);

/* Granted lanes (every target grants at least this many), >= 1. */
REPL_API unsigned repl_lanes(const struct repl *r);

/* Number of replicas, in the order of the configuration. */
REPL_API unsigned repl_replicas(const struct repl *r);

/* ---- persistence: librepl_persist(3) ------------------------------------ */

/*
 * Post a range; returns at once. The library reads the bytes at any time up to
 * the end of the lane's next drain. Later flushes of the same bytes on the
 * same lane win. Overlapping and adjacent ranges are merged. Threads may flush
 * the same bytes on several lanes: when their drains have returned replicas have
 * the newest. A drain waits for others that have any of its bytes on their way.
 * Of 8 aligned bytes all go when a range names some.
 */
REPL_API int repl_flush(struct repl *r, unsigned lane, size_t off, size_t len) REPL_MUST_CHECK;

/* Wait until all that this lane flushed is durable on every replica. */
REPL_API int repl_drain(struct repl *r, unsigned lane) REPL_MUST_CHECK;

/* repl_flush() and repl_drain(). */
REPL_API int repl_persist(struct repl *r, unsigned lane, size_t off, size_t len) REPL_MUST_CHECK;

/*
 * Make the 8 bytes at off, a multiple of 8, durable all or nothing: the
 * target's CPU stores them in one instruction, after everything that this lane
 * flushed before is durable. As with b of a pair, none of them may be flushed by then and
 * not drained.
 */
REPL_API int repl_persist_atomic8(struct repl *r, unsigned lane, size_t off) REPL_MUST_CHECK;

/*
 * Ordered pair: both ranges durable on return, and on no replica, at no
 * moment, any byte of b without the whole of a. Ranges must not overlap. When b is stored
 * nothing of the 8 aligned bytes that any of it is in may be flushed and not drained, on any
 * lane, nor be flushed by others until the call returns: that would take b along.
 */
REPL_API int repl_persist_pair(struct repl *r, unsigned lane, size_t a_off, size_t a_len,
			       size_t b_off, size_t b_len) REPL_MUST_CHECK;

/*
 * Make durable all that was flushed on any lane of the handle before the call.
 * lane is one of them, any. Lanes on which other threads have a call under way
 * are waited for, and calls that come meanwhile wait; REPL_E_TIMEOUT if one is
 * not free within op-timeout.
 */
REPL_API int repl_commit(struct repl *r, unsigned lane) REPL_MUST_CHECK;

/*
 * Append len bytes where the tail word at tail_off, a multiple of 8, points: 8
 * bytes, little-endian, the offset of the next free byte of an area of the pool
 * that ends at limit. It has been made durable before its first use. On return
 * the bytes and then the tail word are stored in the range and durable on
 * every replica, and *off is where they are. Appends of several threads, each
 * on a lane of its own, get places without gap or overlap; they take turns.
 * len is at most the size of a message less 56, 65480 by default. REPL_E_NOSPC:
 * not enough room below limit, nothing has changed. What was flushed before is
 * not drained.
 */
REPL_API int repl_append(struct repl *r, unsigned lane, size_t tail_off, size_t limit,
			 const void *data, size_t len, size_t *off) REPL_MUST_CHECK;

/*
 * The range is new_size bytes now: the caller has mapped more
 * behind it, at the same address, of zeros. Every replica grows while its lanes
 * stay open; other threads may go on calling. REPL_E_NOSPC, or another
 * replica's refusal: none has grown, all is as before. What is not zero in the new
 * part is to be flushed as any other change.
 */
REPL_API int repl_grow(struct repl *r, size_t new_size) REPL_MUST_CHECK;

/*
 * Read from replica (0 .. repl_replicas()-1) into buf, in pieces of 1 MiB at most: after half of
 * op-timeout none is begun. If that was too little for all, REPL_E_TIMEOUT, and the replica stays:
 * read much by several calls. A piece that is not answered loses the replica. REPL_E_BUSY, too,
 * where others have read from it, or its queue was sent, for all of the time.
 */
REPL_API int repl_read(struct repl *r, unsigned lane, unsigned replica, void *buf, size_t off,
		       size_t len) REPL_MUST_CHECK;

/* ---- persistent log: librepl_log(3) -------------------------------------- */

struct repl_log;

/* How a log knows where it ends; part of the format (LOG-FORMAT.md). */
enum repl_log_kind {
	REPL_LOG_CHECKSUM = 1, /* by the records' checksums: one update an append */
	REPL_LOG_POINTER = 2,  /* by 8 bytes, written after the records */
	REPL_LOG_COUNTER = 3,  /* by the greatest of ten such, written in turn */
	REPL_LOG_REGISTER = 4, /* by the XOR of ten such, written in turn */
};

#define REPL_LOG_SIZE_MIN   16384U     /* of a log's area; 12288 of it are not for records */
#define REPL_LOG_RECORD_MAX (1U << 20) /* bytes of data in a record */
#define REPL_LOG_BATCH_MAX  1024U      /* records in a batch */

/*
 * Make a log in the size bytes at off of the open pool, both multiples of 4096;
 * what is there is lost, but a log there is REPL_E_EXISTS. Both calls use lane 0.
 */
REPL_API int repl_log_create(struct repl *r, size_t off, size_t size, enum repl_log_kind kind,
			     struct repl_log **out) REPL_MUST_CHECK;

/*
 * Open the log at off: all its records are those that were acknowledged and, of
 * each writer, at most the one append that was under way, whole or not at all.
 * REPL_E_NOT_FOUND, REPL_E_VERSION, REPL_E_CORRUPT. A log is open once at a time:
 * REPL_E_BUSY, also where another one that is open lies in its area.
 */
REPL_API int repl_log_open(struct repl *r, size_t off, struct repl_log **out) REPL_MUST_CHECK;

/* Free; before repl_close(). No other call may be in the log. NULL is allowed. */
REPL_API void repl_log_close(struct repl_log *log);

/*
 * Append 1 to REPL_LOG_RECORD_MAX bytes; returns when they and all records
 * before them are durable on every replica. *position, if not NULL, gets the
 * record's. Any number of threads may append, each with a lane of its own: what
 * has gathered goes by one of their lanes. REPL_E_NOSPC: full, nothing was
 * done. After any other error but REPL_E_INVAL the log takes no more appends,
 * and whether this one is there is known when the log is opened again.
 */
REPL_API int repl_log_append(struct repl_log *log, unsigned lane, const void *data, size_t len,
			     uint64_t *position) REPL_MUST_CHECK;

/* Append count records in a row, all of them durable on return; *first is the first one's. */
REPL_API int repl_log_append_batch(struct repl_log *log, unsigned lane, const struct iovec *iov,
				   size_t count, uint64_t *first) REPL_MUST_CHECK;

/*
 * Read the record at position from the local range: begin with repl_log_head()
 * and go on with *next until REPL_E_NOT_FOUND, which is the tail or a position
 * that was trimmed. *len gets the record's length, also with REPL_E_LIMIT when
 * buf is too small: then *next is not set, to read it with more room. Any thread,
 * at any time.
 */
REPL_API int repl_log_read(struct repl_log *log, uint64_t position, void *buf, size_t size,
			   size_t *len, uint64_t *next) REPL_MUST_CHECK;

/*
 * Forget the records before position, a record's or the tail: their space is
 * made zero, on the targets in the background, and used again.
 */
REPL_API int repl_log_trim(struct repl_log *log, unsigned lane, uint64_t position) REPL_MUST_CHECK;

/* The position of the oldest record, and the one behind the last durable record. */
REPL_API uint64_t repl_log_head(struct repl_log *log);
REPL_API uint64_t repl_log_tail(struct repl_log *log);

/* ---- observation: librepl_stat(3) ---------------------------------------- */

enum repl_connection { REPL_CONN_CONNECTED, REPL_CONN_CONNECTING, REPL_CONN_STANDALONE };
enum repl_replication { REPL_REPL_ESTABLISHED, REPL_REPL_RESYNCING, REPL_REPL_DEGRADED };
enum repl_data {
	REPL_DATA_UP_TO_DATE,
	REPL_DATA_INCONSISTENT,
	REPL_DATA_OUTDATED,
	REPL_DATA_UNKNOWN
};

/*
 * Why a replica is not connected, established and up to date: RELIABILITY.md lists what
 * they mean and what helps. Values are part of the ABI and are never reused.
 */
enum repl_reason {
	REPL_REASON_NONE = 0,
	REPL_REASON_CONNECTING = 1,
	REPL_REASON_UNREACHABLE = 2,
	REPL_REASON_LOGIN_REFUSED = 3,
	REPL_REASON_HOST_KEY = 4,
	REPL_REASON_TIMED_OUT = 5,
	REPL_REASON_CONNECTION_LOST = 6,
	REPL_REASON_NOT_ANSWERING = 7,
	REPL_REASON_PROTOCOL = 8,
	REPL_REASON_VERSION = 9,
	REPL_REASON_TARGET_IO = 10,
	REPL_REASON_TARGET_FULL = 11,
	REPL_REASON_TARGET_LIMIT = 12,
	REPL_REASON_POOL_MISSING = 13,
	REPL_REASON_OTHER_WRITER = 14,
	REPL_REASON_PROMOTED = 15,
	REPL_REASON_BEHIND = 16,
	REPL_REASON_DIVERGED = 17,
	REPL_REASON_UNRELATED = 18,
	REPL_REASON_SIZE = 19,
	REPL_REASON_DAMAGED = 20,
	REPL_REASON_REFUSED = 21,
	REPL_REASON_PAUSED = 22,
	REPL_REASON_LAG = 23,
	REPL_REASON_RESYNCING = 24,
	REPL_REASON_INCONSISTENT = 25,
	REPL_REASON_OUTDATED = 26,
	REPL_REASON_WRITER_GONE = 27,
	REPL_REASON_CONFIG = 28,
	REPL_REASON_LOCAL = 29,
	REPL_REASON_FAILED = 30,
	REPL_REASON_DATA_PORT = 31,
	REPL_REASON_BEING_READ = 32,
};

#define REPL_REASON_COUNT 33 /* grows with later versions */

/* Bucket i of the histogram counts drains of [2^i, 2^(i+1)) ns; the last is open. */
#define REPL_HIST_BUCKETS 40

/*
 * Counters since repl_open(). struct_size is set by the caller to
 * sizeof(struct repl_stat); later versions only append fields. So a program
 * need not be built again: of a library that is newer it gets the fields that
 * it was compiled with, with one that is older the fields that this does not
 * know are zero. Any struct that is laid open here is to begin so.
 */
struct repl_stat {
	size_t struct_size;
	uint64_t flush_count;                   /* ranges posted */
	uint64_t merged_count;                  /* ranges that were merged into another */
	uint64_t drain_count;                   /* drains completed */
	uint64_t message_count;                 /* messages sent to this replica */
	uint64_t write_count;                   /* RMA writes to this replica */
	uint64_t read_count;                    /* RMA reads from this replica */
	uint64_t byte_count;                    /* payload bytes sent to this replica */
	uint64_t error_count;                   /* failed operations */
	uint64_t latency_ns[REPL_HIST_BUCKETS]; /* drains, by duration */
	uint64_t degraded_count;                /* drains that this replica missed */
	int connection;                         /* enum repl_connection */
	int replication;                        /* enum repl_replication */
	int data;                               /* enum repl_data */
	char reason[256];                       /* why, when not established */
	uint64_t immediate_count;               /* of write_count: with immediate data */
	int reason_code;                        /* enum repl_reason: the kind of reason */
	int paused;                             /* 1: by an administrator */
	uint64_t lag_bytes;       /* acknowledged, and on their way to an async replica */
	uint64_t lag_ms;          /* how long the oldest of them has been */
	uint64_t dirty_bytes;     /* that the replica misses, in units of the dirty map */
	uint64_t resync_total;    /* bytes to look at in the resync under way; 0: none is */
	uint64_t resync_done;     /* of them, looked at */
	uint64_t resync_moved;    /* bytes of them that were sent */
	uint64_t resync_rate;     /* bytes of resync_done a second, of late */
	uint64_t resync_eta_ms;   /* until it is up to date, at that rate; 0: not known */
	uint64_t reconnect_count; /* times that it was lost and came back */
	uint64_t latency_sum_ns;  /* of all drains in latency_ns */
	char provider[16];        /* libfabric's, that its lanes go by; "" before the first ones */
	char provider_why[200];   /* with provider = auto: why it is not the preferred one; or "" */
	uint64_t uncopied_count;  /* of byte_count: that an RNIC took from the pool itself */
};

REPL_API int repl_stat(struct repl *r, unsigned replica, struct repl_stat *st) REPL_MUST_CHECK;

/*
 * What was probed on a replica's target, as lines "fact = value (source)",
 * then the chosen method per size and why. The text is the handle's and valid
 * until repl_close().
 */
REPL_API int repl_profile(struct repl *r, unsigned replica, const char **text) REPL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
