/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_raw.h"

#include <string.h>

#include "clock.h"
#include "control.h"
#include "hex.h"

#define RENEW_S 10U /* one that is so young is not opened anew, however much is asked for */

static int
raw_connect(struct bench_raw *raw, const struct remote *remote, struct json_object *o,
	    unsigned seconds, struct err *e)
{
	uint8_t token[TCPRAW_TOKEN_SIZE];
	const char *address = NULL, *text = NULL;
	uint64_t port = 0;
	int rc = control_get_text(o, "address", sizeof(raw->address) - 1, &address, e);

	if (!rc)
		rc = control_get_u64(o, "port", 1, UINT16_MAX, &port, e);
	if (!rc)
		rc = control_get_text(o, "token", 2 * sizeof(token), &text, e);
	rc = control_answer_bad(rc, "bench.open", e);
	if (!rc && !hex_decode(text, strlen(text), token, sizeof(token)))
		rc = err_set(e, REPL_E_PROTOCOL, "bench.open: the token is no 64 hex digits");
	if (rc)
		return rc;
	remote_reach(remote, address, raw->address, sizeof(raw->address));
	raw->end_ns = clock_deadline(seconds * 1000);
	rc = tcpraw_connect(raw->address, (uint16_t)port, token, raw->end_ns, &raw->tcp, e);
	/* A target that hangs is given up as soon as on a lane. */
	if (!rc)
		tcpraw_set_patience(raw->tcp, remote_op_timeout_ms(remote));
	return rc;
}

int
bench_raw_open(struct bench_raw *raw, struct ctl *c, unsigned seconds)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	int rc;

	if (seconds > BENCH_RAW_SECONDS_MAX)
		seconds = BENCH_RAW_SECONDS_MAX;
	control_add(params, "seconds", json_object_new_int((int)seconds));
	rc = remote_call(c->remote, "bench.open", params, &result, &c->err);
	if (!rc)
		rc = raw_connect(raw, c->remote, result, seconds, &c->err);
	json_object_put(result);
	return rc ? rc : pulse_start(&raw->pulse, c->remote, &c->err);
}

int
bench_raw_renew(struct bench_raw *raw, struct ctl *c, unsigned seconds)
{
	int rc;

	if (seconds > BENCH_RAW_SECONDS_MAX - RENEW_S)
		seconds = BENCH_RAW_SECONDS_MAX - RENEW_S;
	if (raw->tcp && clock_now_ns() + seconds * NS_PER_S < raw->end_ns)
		return 0;
	bench_raw_close(raw);
	rc = remote_call(c->remote, "bench.close", json_object_new_object(), NULL, &c->err);
	return rc ? rc : bench_raw_open(raw, c, BENCH_RAW_SECONDS_MAX);
}

void
bench_raw_close(struct bench_raw *raw)
{
	pulse_stop(&raw->pulse);
	tcpraw_free(raw->tcp);
	raw->tcp = NULL;
}
