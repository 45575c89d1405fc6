/* SPDX-License-Identifier: BSD-3-Clause */
/* The temporary pool of replctl bench, and what is connected to it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "bench.h"
#include "clock.h"
#include "control.h"
#include "interrupt.h"

#define PULSE_NS        NS_PER_S
#define RAW_SECONDS_MAX 120
#define RAW_SECONDS_MIN 20 /* beyond the time of the measurements */

static int
pool_call(struct bench *b, const char *method, uint64_t size)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "name", json_object_new_string(b->pool));
	if (size)
		json_object_object_add(params, "size", json_object_new_uint64(size));
	return remote_call(b->c->remote, method, params, NULL, &b->c->err);
}

static int
pool_make(struct bench *b)
{
	uint8_t salt[8];
	char hex[2 * sizeof(salt) + 1];
	int rc;

	if (getrandom(salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
		return err_errno(&b->c->err, REPL_E_FAILED, errno, "getrandom");
	hex_encode(salt, sizeof(salt), hex);
	(void)snprintf(b->pool, sizeof(b->pool), "bench-%s", hex);
	/* An answer that is lost leaves a pool as well. */
	b->pool_made = true;
	rc = pool_call(b, "pool.create", b->pool_size);
	if (!rc)
		rc = remote_pool_open(b->c->remote, b->pool, REMOTE_WRITE, &b->c->err);
	return rc;
}

static uint8_t *
buffer_new(uint64_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	memset(mem, 0x5a, size);
	return mem;
}

static int
buffers_make(struct bench *b)
{
	b->mem = buffer_new(b->pool_size);
	b->back = buffer_new(b->pool_size);
	b->samples = calloc(BENCH_SAMPLES_MAX, sizeof(*b->samples));
	if (!b->mem || !b->back || !b->samples)
		return err_set(&b->c->err, REPL_E_NOMEM,
			       "out of memory for two buffers of the pool's size");
	return 0;
}

static int
lanes_make(struct bench *b)
{
	int rc = remote_lanes_open(b->c->remote, BENCH_LANES_MAX, &b->c->err);

	if (rc)
		return rc;
	b->lanes = remote_terms(b->c->remote)->lanes;
	for (unsigned i = 0; i < b->lanes; i++)
		lane_bind(remote_lane(b->c->remote, i), b->mem);
	b->limits = remote_lane(b->c->remote, 0)->limits;
	return 0;
}

static int
raw_connect(struct bench *b, struct json_object *o, unsigned seconds)
{
	uint8_t token[TCPRAW_TOKEN_SIZE];
	const char *address = NULL, *text = NULL;
	struct err *e = &b->c->err;
	uint64_t port = 0;
	int rc = control_get_text(o, "address", sizeof(b->address) - 1, &address, e);

	if (!rc)
		rc = control_get_u64(o, "port", 1, UINT16_MAX, &port, e);
	if (!rc)
		rc = control_get_text(o, "token", 2 * sizeof(token), &text, e);
	if (!rc && !hex_decode(text, strlen(text), token, sizeof(token)))
		rc = err_set(e, REPL_E_PROTOCOL, "bench.open: the token is no 64 hex digits");
	if (rc)
		return rc;
	(void)snprintf(b->address, sizeof(b->address), "%s", address);
	return tcpraw_connect(address, (uint16_t)port, token, clock_deadline(seconds * 1000),
			      &b->raw, e);
}

static int
raw_make(struct bench *b)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	unsigned seconds = b->seconds * 2 + RAW_SECONDS_MIN;
	int rc;

	if (seconds > RAW_SECONDS_MAX)
		seconds = RAW_SECONDS_MAX;
	json_object_object_add(params, "seconds", json_object_new_int((int)seconds));
	rc = remote_call(b->c->remote, "bench.open", params, &result, &b->c->err);
	if (!rc)
		rc = raw_connect(b, result, seconds);
	json_object_put(result);
	return rc;
}

int
bench_open(struct bench *b)
{
	int rc = ctl_connect(b->c);

	b->pinged_ns = clock_now_ns();
	if (!rc)
		rc = buffers_make(b);
	if (!rc)
		rc = pool_make(b);
	if (!rc)
		rc = lanes_make(b);
	return rc ? rc : raw_make(b);
}

int
bench_pulse(struct bench *b)
{
	uint64_t now = clock_now_ns();

	if (interrupt_seen())
		return err_set(&b->c->err, REPL_E_FAILED, "interrupted");
	if (now - b->pinged_ns < PULSE_NS)
		return 0;
	b->pinged_ns = now;
	return remote_call(b->c->remote, "ping", NULL, NULL, &b->c->err);
}

/* By a new session if the old one can't: its end has let go of the pool. */
static int
pool_remove(struct bench *b)
{
	struct ctl *c = b->c;
	int rc;

	if (remote_pool_close(c->remote, &c->err) == 0 && pool_call(b, "pool.remove", 0) == 0)
		return 0;
	ctl_disconnect(c);
	rc = ctl_connect(c);
	if (!rc)
		rc = pool_call(b, "pool.remove", 0);
	return rc == REPL_E_NOT_FOUND ? 0 : rc;
}

static void
pool_clear(struct bench *b)
{
	struct ctl *c = b->c;
	struct err first = c->err;

	if (!c->remote || !b->pool_made)
		return;
	if (first.code && remote_next_step(c->remote)[0])
		ctl_next(c, "%s", remote_next_step(c->remote));
	err_clear(&c->err);
	if (pool_remove(b)) {
		if (!first.code)
			(void)err_prefix(&c->err, "the temporary pool '%s' stays", b->pool);
		c->next[0] = '\0';
		ctl_next(c, "replctl remove --force %s/%s", c->host_text, b->pool);
	} else {
		err_clear(&c->err);
	}
	if (first.code)
		c->err = first;
}

void
bench_close(struct bench *b)
{
	tcpraw_free(b->raw);
	pool_clear(b);
	/* Before the buffers: what lanes have in flight uses them. */
	ctl_disconnect(b->c);
	if (b->mem)
		(void)munmap(b->mem, b->pool_size);
	if (b->back)
		(void)munmap(b->back, b->pool_size);
	free(b->samples);
	b->raw = NULL;
	b->mem = b->back = NULL;
	b->samples = NULL;
}
