/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.open, bench.close. */
#include "handlers.h"

#include <stdio.h>
#include <string.h>

#include "baseline.h"
#include "control.h"
#include "describe.h"
#include "hex.h"
#include "log.h"
#include "tcpraw.h"

static struct json_object *
bench_new(const struct baseline *b, const char *address)
{
	struct json_object *o = json_object_new_object();
	char token[2 * TCPRAW_TOKEN_SIZE + 1];

	hex_encode(baseline_token(b), TCPRAW_TOKEN_SIZE, token);
	describe_add_text(o, "address", address);
	describe_add_u64(o, "port", baseline_port(b));
	describe_add_text(o, "token", token);
	explicit_bzero(token, sizeof(token));
	return o;
}

static void
bench_end(struct state *s)
{
	baseline_free(s->baseline);
	s->baseline = NULL;
}

int
handle_bench_open(struct state *s, struct json_object *params, struct reply *r)
{
	char address[HANDLERS_ADDRESS_MAX];
	uint64_t seconds;
	int rc = control_get_u64(params, "seconds", 1, BASELINE_SECONDS_MAX, &seconds, &r->err);

	if (rc)
		return rc;
	if (s->baseline && !baseline_ended(s->baseline)) {
		(void)snprintf(r->next, sizeof(r->next), "bench.close");
		return err_set(&r->err, REPL_E_BUSY, "this session serves a baseline already");
	}
	bench_end(s);
	handlers_data_address(s->conf, address);
	rc = baseline_new(address, (uint16_t)s->conf->data_port_first,
			  (uint16_t)s->conf->data_port_last, (unsigned)seconds, &s->baseline,
			  &r->err);
	if (rc)
		return rc;
	r->result = bench_new(s->baseline, handlers_told_address(s->conf, address));
	log_info("baseline of %u s on %s port %u", (unsigned)seconds, address,
		 (unsigned)baseline_port(s->baseline));
	return REPL_OK;
}

int
handle_bench_close(struct state *s, struct json_object *params, struct reply *r)
{
	(void)params;
	(void)r;
	bench_end(s);
	return REPL_OK;
}
