/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile - an initiator that has a valid login and uses it badly. A mode ends
 * by returning, or through hostile_fail() when the target did not behave.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "regions.h"
#include "remote.h"
#include "wire.h"

#define HOSTILE_POOL_SIZE (1UL << 20)
#define HOSTILE_LANES_MAX 64U
#define HOSTILE_WAIT_MS   20000U

struct hostile {
	const char *target, *provider;
	struct repl_config *config;
	struct remote *remote;
	uint32_t epoch;
	struct regions regions; /* by verbs: where the pool is, as REGISTER has told */
};

/* What lanes.open granted, the tokens unused. */
struct grant {
	char address[64];
	uint16_t port;
	unsigned lanes, depth;
	size_t msg_size;
	uint64_t key, deadline_ms, imm_unit;
	bool bare;
	const char *provider;
	const struct regions *regions; /* that lanes go by; NULL: keys are ours */
	unsigned lane_lie;             /* added to the number that lanes give for their own */
	uint8_t tokens[HOSTILE_LANES_MAX][WIRE_TOKEN_SIZE];
};

/* "FAILED: text" on standard output, and the end of the program. */
_Noreturn void hostile_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same where the pool has other bytes than it must have. */
_Noreturn void hostile_lost(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A session of its own with the pool open; the pool is made if need be. */
void hostile_open(struct hostile *h, bool write);
void hostile_close(struct hostile *h);

void hostile_ping(struct hostile *h);
void hostile_grant(struct hostile *h, unsigned lanes, unsigned depth, struct grant *g);

/* The same with a receive ring, which must be granted. */
void hostile_grant_ring(struct hostile *h, unsigned lanes, unsigned depth, struct grant *g);
void hostile_lanes_close(struct hostile *h);

/* Connect by token, with depth and msg_size as granted or as the caller claims. */
int hostile_connect(const struct grant *g, const uint8_t *token, unsigned depth, size_t msg_size,
		    uint64_t key, struct fab_lane **out, struct err *e);

/* The same by the book; must succeed. */
struct fab_lane *hostile_lane(const struct grant *g, unsigned i);

/* The ACK of seq with that status must be the next event. */
void hostile_await_ack(struct fab_lane *l, uint64_t seq, bool good, const char *what);

/* The next event; FAB_NONE if none comes within ms. */
void hostile_await(struct fab_lane *l, unsigned ms, struct fab_event *ev);

/* Send what was built and see it acknowledged. */
void hostile_send(struct hostile *h, struct fab_lane *l, struct wire_commit *c, uint64_t seq,
		  struct wire_ack *ack);

/* Have the pool, which is one region, registered for RMA. */
void hostile_register(struct hostile *h, struct fab_lane *l, uint64_t seq);

/* The same by the grant's last lane, which is used up by it. */
void hostile_register_once(struct hostile *h, const struct grant *g);

/* A good COMMIT of one COPY; must be acknowledged. The first of a lane registers as well. */
void hostile_commit(struct hostile *h, struct fab_lane *l, uint64_t seq, uint64_t off,
		    const void *data, uint32_t len);

/* Read the whole pool by RMA; must succeed. */
void hostile_read_pool(struct fab_lane *l, uint8_t *buf);

/* Raw TCP to the data port, non-blocking in nothing. */
int hostile_tcp(const struct grant *g);
void hostile_raise_nofile(void);

/* ---- modes ---- */

void mode_tokens(struct hostile *h);
void mode_late(struct hostile *h);
void mode_garbage(struct hostile *h);
void mode_half(struct hostile *h);
void mode_idle(struct hostile *h);
void mode_linger(struct hostile *h);
void mode_commits(struct hostile *h);
void mode_rma(struct hostile *h);
void mode_readonly(struct hostile *h);
void mode_flood(struct hostile *h);
void mode_lanes(struct hostile *h);
void mode_immediates(struct hostile *h);
void mode_ring(struct hostile *h);
void mode_appends(struct hostile *h);
void mode_stages(struct hostile *h);
void mode_window(struct hostile *h);

#endif
