/* SPDX-License-Identifier: BSD-3-Clause */
/* What replctl bench has found, as tables or as JSON. */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "control.h"
#include "out.h"

#define CELL 32

/* ---- finding series ---- */

static const struct bench_series *
series_find(const struct bench *b, enum bench_group group, enum bench_kind kind, unsigned count)
{
	for (unsigned i = 0; i < b->series_count; i++) {
		const struct bench_series *s = &b->series[i];

		if (s->group == group && s->kind == kind && s->count == count)
			return s;
	}
	return NULL;
}

/* The bare round trip of a size; it stands before the methods that it is compared with. */
static const struct bench_series *
series_raw(const struct bench *b, unsigned size)
{
	for (unsigned i = 0; i < b->series_count; i++) {
		const struct bench_series *s = &b->series[i];

		if (s->group == BENCH_G_SIZES && s->kind == BENCH_RAW_ECHO && s->size == size)
			return s;
	}
	return NULL;
}

static double
ratio(const struct bench_series *s, const struct bench_series *to)
{
	double base = to ? bench_value(to, BENCH_P50) : 0;

	return base > 0 ? bench_value(s, BENCH_P50) / base : 0;
}

/* ---- text ---- */

static const char *
cell_us(char out[CELL], const struct bench_series *s, enum bench_value v)
{
	(void)snprintf(out, CELL, "%.1f", bench_value(s, v) / 1000);
	return out;
}

static const char *
cell_ratio(char out[CELL], double r)
{
	(void)snprintf(out, CELL, r > 0 ? "%.2f" : "-", r);
	return out;
}

static void
print_sizes(const struct bench *b, bool chosen)
{
	static const char *const heads[] = {">SIZE",   ">TCP p50 us", ">p50 us", ">RATIO",
					    ">p99 us", ">p99.9 us",   "METHOD"};
	char size[OUT_NUMBER_MAX], raw[CELL], p50[CELL], rel[CELL], p99[CELL], p999[CELL];
	struct out_table t;

	out_table_init(&t, heads, 7);
	for (unsigned i = 0; i < b->series_count; i++) {
		const struct bench_series *s = &b->series[i], *to;

		if (s->kind != BENCH_PERSIST || bench_is_chosen(b, s) != chosen)
			continue;
		to = series_raw(b, s->size);
		out_size(s->size, size);
		out_table_row(&t, (const char *[]){
					  size, to ? cell_us(raw, to, BENCH_P50) : "-",
					  cell_us(p50, s, BENCH_P50), cell_ratio(rel, ratio(s, to)),
					  cell_us(p99, s, BENCH_P99), cell_us(p999, s, BENCH_P999),
					  plan_method_name(s->method)});
	}
	(void)puts(chosen ? "persist, by the method that is chosen for the size"
			  : "\npersist, by the other methods that are correct there");
	out_table_end(&t);
}

/* A shape, what it is compared with, and their names. */
struct shape {
	const char *name, *base_name;
	const struct bench_series *series, *base;
};

#define SHAPES 5

static void
shapes_find(const struct bench *b, struct shape out[SHAPES])
{
	const struct bench_series *raw = series_find(b, BENCH_G_SHAPES, BENCH_RAW_ECHO, 1);
	const struct bench_series *one = series_find(b, BENCH_G_SHAPES, BENCH_DRAIN, 1);

	out[0] = (struct shape){"drain of 1 range", "tcp", one, raw};
	out[1] = (struct shape){"drain of 16 ranges in a page", "1 range",
				series_find(b, BENCH_G_SHAPES, BENCH_NEAR, BENCH_SPREAD), one};
	out[2] = (struct shape){"drain of 16 ranges far apart", "1 range",
				series_find(b, BENCH_G_SHAPES, BENCH_DRAIN, BENCH_SPREAD), one};
	out[3] = (struct shape){"ordered pair", "1 range",
				series_find(b, BENCH_G_SHAPES, BENCH_PAIR, 1), one};
	out[4] = (struct shape){"atomic 8", "tcp", series_find(b, BENCH_G_SHAPES, BENCH_ATOMIC8, 1),
				raw};
}

static void
print_shapes(const struct bench *b)
{
	static const char *const heads[] = {"64 B EACH", ">p50 us", ">p99 us",
					    ">p99.9 us", ">RATIO",  "TO"};
	char p50[CELL], p99[CELL], p999[CELL], rel[CELL];
	struct shape shapes[SHAPES];
	struct out_table t;

	shapes_find(b, shapes);
	out_table_init(&t, heads, 6);
	for (unsigned i = 0; i < SHAPES; i++) {
		const struct shape *s = &shapes[i];

		out_table_row(&t, (const char *[]){s->name, cell_us(p50, s->series, BENCH_P50),
						   cell_us(p99, s->series, BENCH_P99),
						   cell_us(p999, s->series, BENCH_P999),
						   cell_ratio(rel, ratio(s->series, s->base)),
						   s->base_name});
	}
	(void)puts("\nother operations");
	out_table_end(&t);
}

static void
print_lanes(const struct bench *b)
{
	static const char *const heads[] = {">LANES", ">PERSISTS/s", ">TO ONE LANE"};
	const struct bench_series *one = series_find(b, BENCH_G_LANES, BENCH_LANES, 1);
	char lanes[CELL], rate[CELL], rel[CELL];
	struct out_table t;

	out_table_init(&t, heads, 3);
	for (unsigned i = 0; i < b->series_count; i++) {
		const struct bench_series *s = &b->series[i];

		if (s->kind != BENCH_LANES)
			continue;
		(void)snprintf(lanes, CELL, "%u", s->count);
		(void)snprintf(rate, CELL, "%.0f", bench_value(s, BENCH_RATE));
		out_table_row(&t, (const char *[]){lanes, rate, cell_ratio(rel, ratio(s, one))});
	}
	(void)puts("\nlanes, a thread each, persists of 64 B");
	out_table_end(&t);
}

static const char *
cell_rate(char out[CELL], const struct bench_series *s)
{
	(void)snprintf(out, CELL, "%.2f", bench_value(s, BENCH_RATE) / (double)(1U << 30));
	return out;
}

static const struct {
	const char *name;
	enum bench_group group;
	enum bench_kind raw, ours;
} directions[] = {
	{"write", BENCH_G_OUT, BENCH_RAW_OUT, BENCH_WRITE},
	{"read", BENCH_G_IN, BENCH_RAW_IN, BENCH_READ},
};

#define DIRECTIONS (sizeof(directions) / sizeof(directions[0]))

static void
print_streams(const struct bench *b)
{
	static const char *const heads[] = {"WHOLE POOL", ">TCP GiB/s", ">GiB/s", ">RATIO"};
	char raw[CELL], ours[CELL], rel[CELL];
	struct out_table t;

	out_table_init(&t, heads, 4);
	for (size_t i = 0; i < DIRECTIONS; i++) {
		const struct bench_series *r =
			series_find(b, directions[i].group, directions[i].raw, 1);
		const struct bench_series *s =
			series_find(b, directions[i].group, directions[i].ours, 1);

		out_table_row(&t,
			      (const char *[]){directions[i].name, cell_rate(raw, r),
					       cell_rate(ours, s), cell_ratio(rel, ratio(s, r))});
	}
	(void)puts("\nstreams on one lane");
	out_table_end(&t);
}

static void
print_head(const struct bench *b)
{
	const struct replica_info *info = remote_info(b->c->remote);
	const char *class = profile_value_name(PROFILE_F_CLASS, info->durability);
	char size[OUT_NUMBER_MAX];

	out_size(b->pool_size, size);
	out_field("target", "%s", b->c->host_text);
	out_field("pool", "%s, class %s, %s", size, class ? class : "?", info->filesystem);
	out_field("lanes", "%u by %s to %s", b->lanes, remote_terms(b->c->remote)->provider,
		  b->raw.address);
	out_field("values", "medians of %u rounds that take turns", b->rounds);
	(void)putchar('\n');
}

/* ---- JSON ---- */

static void
add_number(struct json_object *o, const char *name, double value)
{
	char text[CELL];

	(void)snprintf(text, sizeof(text), "%.3f", value);
	control_add(o, name, json_object_new_double_s(value, text));
}

static struct json_object *
latency_json(const struct bench_series *s, const struct bench_series *to)
{
	struct json_object *o = json_object_new_object();

	out_add_u64(o, "p50_ns", (uint64_t)bench_value(s, BENCH_P50));
	out_add_u64(o, "p99_ns", (uint64_t)bench_value(s, BENCH_P99));
	out_add_u64(o, "p999_ns", (uint64_t)bench_value(s, BENCH_P999));
	if (to)
		add_number(o, "ratio", ratio(s, to));
	return o;
}

static struct json_object *
size_json(const struct bench *b, const struct bench_series *raw)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	out_add_u64(o, "size", raw->size);
	control_add(o, "tcp", latency_json(raw, NULL));
	for (unsigned i = 0; i < b->series_count; i++) {
		const struct bench_series *s = &b->series[i];
		struct json_object *method;

		if (s->kind != BENCH_PERSIST || s->size != raw->size)
			continue;
		method = latency_json(s, raw);
		out_add_text(method, "method", plan_method_name(s->method));
		out_add_bool(method, "chosen", bench_is_chosen(b, s));
		control_append(list, method);
	}
	control_add(o, "persist", list);
	return o;
}

static struct json_object *
shapes_json(const struct bench *b)
{
	struct json_object *list = json_object_new_array();
	struct shape shapes[SHAPES];

	shapes_find(b, shapes);
	for (unsigned i = 0; i < SHAPES; i++) {
		struct json_object *o = latency_json(shapes[i].series, shapes[i].base);

		out_add_text(o, "operation", shapes[i].name);
		out_add_text(o, "to", shapes[i].base_name);
		control_append(list, o);
	}
	return list;
}

static struct json_object *
lanes_json(const struct bench *b)
{
	const struct bench_series *one = series_find(b, BENCH_G_LANES, BENCH_LANES, 1);
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < b->series_count; i++) {
		const struct bench_series *s = &b->series[i];
		struct json_object *o;

		if (s->kind != BENCH_LANES)
			continue;
		o = json_object_new_object();
		out_add_u64(o, "lanes", s->count);
		out_add_u64(o, "persists_per_s", (uint64_t)bench_value(s, BENCH_RATE));
		add_number(o, "ratio", ratio(s, one));
		control_append(list, o);
	}
	return list;
}

static struct json_object *
streams_json(const struct bench *b)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < DIRECTIONS; i++) {
		const struct bench_series *r =
			series_find(b, directions[i].group, directions[i].raw, 1);
		const struct bench_series *s =
			series_find(b, directions[i].group, directions[i].ours, 1);
		struct json_object *o = json_object_new_object();

		out_add_text(o, "direction", directions[i].name);
		out_add_u64(o, "tcp_bytes_per_s", (uint64_t)bench_value(r, BENCH_RATE));
		out_add_u64(o, "bytes_per_s", (uint64_t)bench_value(s, BENCH_RATE));
		add_number(o, "ratio", ratio(s, r));
		control_append(list, o);
	}
	return list;
}

static struct json_object *
report_json(const struct bench *b)
{
	const struct replica_info *info = remote_info(b->c->remote);
	const char *class = profile_value_name(PROFILE_F_CLASS, info->durability);
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	out_add_text(o, "target", b->c->host_text);
	out_add_text(o, "address", b->raw.address);
	out_add_text(o, "provider", remote_terms(b->c->remote)->provider);
	out_add_text(o, "class", class ? class : "?");
	out_add_text(o, "filesystem", info->filesystem);
	out_add_u64(o, "size", b->pool_size);
	out_add_u64(o, "rounds", b->rounds);
	for (unsigned i = 0; i < b->series_count; i++) {
		const struct bench_series *s = &b->series[i];

		if (s->group == BENCH_G_SIZES && s->kind == BENCH_RAW_ECHO)
			control_append(list, size_json(b, s));
	}
	control_add(o, "sizes", list);
	control_add(o, "operations", shapes_json(b));
	control_add(o, "lanes", lanes_json(b));
	control_add(o, "streams", streams_json(b));
	return o;
}

void
bench_report(struct bench *b)
{
	if (!b->c->options.json) {
		print_head(b);
		print_sizes(b, true);
		print_sizes(b, false);
		print_shapes(b);
		print_lanes(b);
		print_streams(b);
	}
	ctl_answer(b->c, report_json(b));
}
