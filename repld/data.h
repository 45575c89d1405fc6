/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data - the target's end of the data lanes: one thread a session that takes
 * COMMITs from all lanes, stores, flushes what has gathered in one go, and
 * answers.
 */
#ifndef REPLD_DATA_H
#define REPLD_DATA_H

#include <stdatomic.h>
#include <stdint.h>

#include "err.h"
#include "fabric.h"
#include "pmem.h"
#include "pooljournal.h"
#include "poolposition.h"
#include "poolring.h"
#include "roundlog.h"
#include "wire.h"

struct data;

struct data_params {
	const char *provider;
	const char *address; /* numeric, to bind and to tell the initiator */
	uint16_t port_first, port_last;
	unsigned lanes;
	unsigned depth;
	size_t msg_size;
	struct pmem_map *map;
	struct pooljournal *journal; /* borrowed; NULL: none can be begun */
	struct poolring *ring;       /* borrowed: receive buffers; NULL: none */
	struct roundlog *log; /* borrowed: makes messages durable; NULL: the pool's syncs do */
	struct poolposition *record; /* borrowed: of POSITIONs; NULL: none is kept, or in the log */
	bool bare;                   /* nothing is kept of messages: a BARE may come */
	bool put;                    /* PUTs may come: the pool is reached by its file, too */
	size_t window;               /* of each lane, for reads by FETCH; 0: there is none */
	bool write;                  /* pool open for writing */
	bool rma;                    /* regions of the pool may be registered for RMA */
	bool hole;                   /* trimmed space is given back */
	bool sparse;                 /* space is had when it is written, or written anew */
	uint32_t epoch;
	unsigned join_ms;      /* the port closes after this */
	uint64_t busy_poll_ns; /* the thread polls for so long after the last event */
};

struct data_counters {
	_Atomic uint64_t commits;      /* immediates that were answered are counted in */
	_Atomic uint64_t commit_bytes; /* carried by messages */
	_Atomic uint64_t write_bytes;  /* written by RMA and named by FLUSH entries or immediates */
	_Atomic uint64_t flushes, errors, lanes_joined, rejected;
	_Atomic uint64_t last_commit_s;
};

/* Opens the port, makes tokens and key, starts the thread. */
int data_new(const struct data_params *p, struct data **out, struct err *e);

/*
 * Whether the pool may grow to that size; REPL_E_LIMIT if there would be too many regions, or more
 * to be registered than the limit of locked memory allows.
 */
int data_grow_check(const struct data *d, uint64_t size, struct err *e);

/*
 * The pool has grown: its new part may be registered. To be called before the
 * new size is published; REPL_E_LIMIT if there are too many regions.
 */
int data_grow(struct data *d, uint64_t size, struct err *e);

/* Where regions begin; see regions.h. */
uint64_t data_region_unit(const struct data *d);

/* Stops the thread: no update is taken any more, and data_failed() stays what it is. */
void data_stop(struct data *d);

/* Stops the thread, closes port and lanes. */
void data_free(struct data *d);

uint16_t data_port(const struct data *d);
uint64_t data_key(const struct data *d);
/* What an immediate counts in, see wire.h; 0: the provider has none. */
uint64_t data_imm_unit(const struct data *d);
const uint8_t *data_token(const struct data *d, unsigned lane); /* WIRE_TOKEN_SIZE */
/*
 * 0, or the status of the flush that failed: what was stored since may be lost
 * although a later flush reports success, so the pool is not up to date.
 */
int data_failed(const struct data *d);

/* The highest POSITION whose drain is durable in the pool; 0: none came. Of a stopped thread. */
uint64_t data_position(const struct data *d);

/*
 * Another thread's sync of the pool's file has failed. The kernel tells that
 * once, so this thread's next flush would report success for what was lost.
 */
void data_fail(struct data *d, int status);

const struct data_counters *data_get_counters(const struct data *d);

#endif
