/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl verify FILE TARGET/pool */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "control.h"
#include "interrupt.h"
#include "out.h"
#include "poolfile.h"
#include "progress.h"

#define RANGES_MAX 100U

struct verify {
	struct progress progress;
	uint64_t range_count, byte_count;
	struct {
		uint64_t off, len;
	} ranges[RANGES_MAX];
};

static int
verify_tell(void *arg, const struct transfer_progress *t)
{
	struct verify *v = arg;

	return progress_tell(&v->progress, t);
}

static void
verify_differ(void *arg, uint64_t off, uint64_t len)
{
	struct verify *v = arg;

	if (v->range_count < RANGES_MAX) {
		v->ranges[v->range_count].off = off;
		v->ranges[v->range_count].len = len;
	}
	v->range_count++;
	v->byte_count += len;
}

static unsigned
ranges_kept(const struct verify *v)
{
	return v->range_count < RANGES_MAX ? (unsigned)v->range_count : RANGES_MAX;
}

static void
print_ranges(const struct verify *v)
{
	static const char *const heads[] = {">OFFSET", ">LENGTH"};
	struct out_table t;

	out_table_init(&t, heads, 2);
	for (unsigned i = 0; i < ranges_kept(v); i++) {
		char off[OUT_NUMBER_MAX], len[OUT_NUMBER_MAX];

		(void)snprintf(off, sizeof(off), "%" PRIu64, v->ranges[i].off);
		(void)snprintf(len, sizeof(len), "%" PRIu64, v->ranges[i].len);
		out_table_row(&t, (const char *[]){off, len});
	}
	out_table_end(&t);
	if (v->range_count > RANGES_MAX)
		(void)printf("and %" PRIu64 " more range%s\n", v->range_count - RANGES_MAX,
			     out_plural(v->range_count - RANGES_MAX));
}

static struct json_object *
ranges_json(const struct verify *v)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < ranges_kept(v); i++) {
		struct json_object *o = json_object_new_object();

		out_add_u64(o, "off", v->ranges[i].off);
		out_add_u64(o, "len", v->ranges[i].len);
		control_append(list, o);
	}
	return list;
}

static void
verify_report(struct ctl *c, const struct poolfile *p, const struct verify *v, uint64_t ns)
{
	struct json_object *answer = json_object_new_object();
	char size[OUT_NUMBER_MAX], duration[OUT_NUMBER_MAX];

	out_size(p->size, size);
	out_duration(ns, duration);
	if (!c->options.json && v->range_count)
		print_ranges(v);
	else if (!c->options.json)
		(void)printf("equal: all %s compared in %s\n", size, duration);
	out_add_text(answer, "file", p->path);
	out_add_text(answer, "target", c->target_text);
	out_add_bool(answer, "equal", v->range_count == 0);
	out_add_u64(answer, "size", p->size);
	out_add_u64(answer, "range_count", v->range_count);
	out_add_u64(answer, "differing_bytes", v->byte_count);
	control_add(answer, "ranges", ranges_json(v));
	ctl_answer(c, answer);
}

static int
verify_open(struct ctl *c, const struct poolfile *p)
{
	const struct replica_info *info;
	struct progress progress;
	int rc;

	progress_wait(&progress, c->host_text);
	rc = ctl_connect_lanes(c);
	if (!rc)
		rc = remote_pool_open(c->remote, c->target.pool, REMOTE_READ, &c->err);
	(void)progress_end(&progress);
	if (!rc)
		rc = remote_refuse_headers(c->remote, &c->err);
	if (rc)
		return rc;
	info = remote_info(c->remote);
	if (info->meta.pool_size != p->size)
		return err_set(&c->err, REPL_E_DIFFER,
			       "%s has %zu bytes, the replica %s has %" PRIu64, p->path, p->size,
			       c->target_text, info->meta.pool_size);
	if (info->meta.writer_open)
		(void)fprintf(stderr, "replctl: a program writes to the replica: what it is just "
				      "changing may be listed\n");
	else if (info->meta.state == SIDECAR_UNKNOWN && info->meta.position)
		(void)fprintf(
			stderr,
			"replctl: the replica's writer ended without closing it; it holds the "
			"drains up to position %" PRIu64 "\n",
			info->meta.position);
	return remote_lanes_open(c->remote, 1, &c->err);
}

static int
verify_run(struct ctl *c, const struct poolfile *p)
{
	struct verify v = {0};
	struct transfer t = {.remote = c->remote,
			     .file = p->path,
			     .untouched = true,
			     .progress = verify_tell,
			     .arg = &v};
	struct transfer_progress sum;
	uint64_t ns;
	int rc;

	progress_begin(&v.progress, "verify", p->size, c->options.json);
	rc = transfer_compare(&t, p->mem, p->size, verify_differ, &sum, &c->err);
	ns = progress_end(&v.progress);
	/* Written to it may be: a program may have it open. */
	if ((!rc || rc == REPL_E_DIFFER) && poolfile_same(p, &c->err))
		return c->err.code;
	if (!rc || rc == REPL_E_DIFFER)
		verify_report(c, p, &v, ns);
	if (rc == REPL_E_DIFFER)
		(void)err_set(&c->err, REPL_E_DIFFER,
			      "%s and %s differ in %" PRIu64 " range%s, %" PRIu64 " byte%s",
			      p->path, c->target_text, v.range_count, out_plural(v.range_count),
			      v.byte_count, out_plural(v.byte_count));
	return rc;
}

static void
verify_next(struct ctl *c, const char *file, int rc)
{
	char *word = out_quote(file), *target = out_quote(c->target_text);

	if (word && target && interrupt_seen())
		ctl_next(c, "replctl verify %s %s (begins anew; nothing was changed)", word,
			 target);
	else if (word && target && rc == REPL_E_DIFFER)
		ctl_next(c,
			 "replctl why %s says whether the replica lacks something; replctl sync "
			 "--dry-run %s %s, what would make it equal to the file",
			 target, word, target);
	free(word);
	free(target);
}

int
cmd_verify(struct ctl *c, char **args)
{
	struct poolfile p;
	int rc;

	c->file = args[0];
	poolfile_init(&p);
	rc = ctl_target(c, args[1], CTL_POOL);
	if (!rc)
		rc = poolfile_open(&p, args[0], &c->err);
	if (!rc)
		rc = verify_open(c, &p);
	interrupt_catch();
	if (!rc)
		rc = verify_run(c, &p);
	if (rc)
		verify_next(c, args[0], rc);
	ctl_disconnect(c); /* its lanes may still use the file */
	poolfile_fini(&p);
	return rc;
}
