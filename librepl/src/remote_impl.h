/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote_impl - what the parts of a remote share: remote.c has the control
 * channel and the pool, remote_lanes.c the lanes, remote_info.c takes apart
 * what a target tells.
 */
#ifndef LIBREPL_REMOTE_IMPL_H
#define LIBREPL_REMOTE_IMPL_H

#include <pthread.h>

#include "channel.h"
#include "control.h"
#include "remote.h"

struct remote {
	struct target target;
	char self[160]; /* who this program is to targets */
	unsigned connect_timeout_ms;
	unsigned op_timeout_ms;
	char provider[16];         /* as configured */
	char why[200];             /* verbs was given up for this session, or "" */
	pthread_mutex_t lock;      /* guards the channel and everything up to next_step */
	pthread_mutex_t info_lock; /* guards info and asked_size; never held across requests */
	bool lock_made, info_lock_made;
	struct channel *channel;
	struct line_buf lines;
	int64_t next_id;  /* of the next request */
	int64_t await_id; /* of the next answer */
	int64_t ping_id;  /* of a ping whose answer nobody has waited for to the end, or 0 */
	struct remote_request leave; /* of remote_leave(); without a method: none */
	bool broken;                 /* a request went wrong: the stream can't be trusted */
	char next_step[512];
	struct fab_warm *warm; /* until lanes are opened */
	unsigned heartbeat_ms;
	_Atomic uint64_t trip_ns; /* the least that a request took, or 0 */
	uint64_t busy_poll_ns;    /* of its lanes */
	int method;               /* -1 = auto, else enum plan_method */
	bool without_log;         /* the lanes: there was a journal when they were opened */
	bool without_ring;        /* the method is not for these lanes, if it takes a ring */
	bool pool_open;
	bool write;           /* ... for writing */
	uint64_t journal_max; /* 0: the target keeps no journal of it */
	uint64_t hash_ranges; /* of one pool.hash; 0: the target knows of none */
	bool hash_key;        /* the target takes one */
	bool queued;
	bool waits;         /* neither: who has it opened may have but a part of its generation */
	bool keeps_journal; /* what is staged and not committed when the session ends */
	struct replica_info info;
	uint64_t asked_size; /* the most that this session had the pool grow to, or 0 */
	struct profile profile;
	uint32_t epoch;
	struct lane_terms terms;
	struct regions regions; /* of the pool as the lanes know it */
	_Atomic uint64_t stamp; /* of DEPOSITs: the last one given out */
	struct fab_lane **fabs;
	struct lane *lanes;
	struct json_object *(*report)(void *arg); /* of remote_reports(), or NULL */
	void *report_arg;
	const _Atomic int *cancel;     /* of the hooks */
	const _Atomic uint64_t *until; /* of remote_bound(), or NULL */
	struct remote_traffic before;  /* of lanes that were closed */
};

#endif
