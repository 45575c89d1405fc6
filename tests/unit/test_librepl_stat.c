/* SPDX-License-Identifier: BSD-3-Clause */
/* A program and a library of different versions understand each other's struct repl_stat: fields
 * stay where they are, a smaller one gets what it knows of, and of a larger one the rest is zero.
 */
#include "unit.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "repl_impl.h"

#define UNTOUCHED 0xa5
#define ROOM      (sizeof(struct repl_stat) + 512)

/* What programs were compiled with. A new field gets a row of its own behind the last. */
static const struct {
	size_t off, due;
} layout[] = {
#define FIELD(name, where) {offsetof(struct repl_stat, name), where},
	FIELD(struct_size, 0) FIELD(flush_count, 8) FIELD(merged_count, 16) FIELD(drain_count, 24)
		FIELD(message_count, 32) FIELD(write_count, 40) FIELD(read_count, 48) FIELD(
			byte_count, 56) FIELD(error_count, 64) FIELD(latency_ns,
								     72) FIELD(degraded_count, 392)
			FIELD(connection, 400) FIELD(replication, 404) FIELD(data, 408) FIELD(
				reason, 412) FIELD(immediate_count, 672) FIELD(reason_code, 680)
				FIELD(paused, 684) FIELD(lag_bytes, 688) FIELD(lag_ms, 696) FIELD(
					dirty_bytes, 704) FIELD(resync_total,
								712) FIELD(resync_done, 720)
					FIELD(resync_moved, 728) FIELD(resync_rate, 736) FIELD(
						resync_eta_ms, 744) FIELD(reconnect_count, 752)
						FIELD(latency_sum_ns, 760) FIELD(provider, 768)
							FIELD(provider_why,
							      784) FIELD(uncopied_count, 984)
#undef FIELD
								{sizeof(struct repl_stat), 992},
};

static struct repl handle;

static int
setup(void **state)
{
	struct replica *p = &handle.replicas[0];

	(void)state;
	handle.replica_count = 1;
	atomic_store(&p->lost, REPL_E_LOST);
	atomic_store(&p->connection, REPL_CONN_STANDALONE);
	atomic_store(&p->replication, REPL_REPL_DEGRADED);
	atomic_store(&p->error_count, 3);
	p->traffic.uncopied = 77;
	(void)strcpy(p->provider, "tcp");
	return pthread_mutex_init(&handle.lock, NULL) |
	       pthread_mutex_init(&handle.reason_lock, NULL);
}

static void
fields_stay_where_they_are(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layout) / sizeof(layout[0]); i++)
		assert_int_equal(layout[i].off, layout[i].due);
}

/* repl_stat() with a struct of that size in the midst of other bytes. */
static int
stat_of_size(size_t size, unsigned char *bytes)
{
	memset(bytes, UNTOUCHED, ROOM);
	memcpy(bytes, &size, sizeof(size));
	return repl_stat(&handle, 0, (struct repl_stat *)(void *)bytes);
}

static void
assert_all(const unsigned char *bytes, size_t from, size_t to, int value)
{
	for (size_t i = from; i < to; i++)
		if (bytes[i] != value)
			fail_msg("byte %zu is 0x%02x, not 0x%02x", i, bytes[i], value);
}

static void
each_gets_what_it_knows_of(void **state)
{
	static const size_t sizes[] = {8, 72, 672, 768, 984, 992, 1000, ROOM};
	const size_t known = sizeof(struct repl_stat);
	unsigned char *all = malloc(ROOM), *some = malloc(ROOM);

	(void)state;
	assert_non_null(all);
	assert_non_null(some);
	assert_int_equal(stat_of_size(known, all), 0);
	assert_int_equal(((struct repl_stat *)(void *)all)->uncopied_count, 77);
	assert_int_equal(((struct repl_stat *)(void *)all)->error_count, 3);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t both = sizes[i] < known ? sizes[i] : known, size;

		assert_int_equal(stat_of_size(sizes[i], some), 0);
		memcpy(&size, some, sizeof(size));
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(some + 8, all + 8, both - 8);
		assert_all(some, both, sizes[i], 0);
		assert_all(some, sizes[i], ROOM, UNTOUCHED);
	}
	free(all);
	free(some);
}

static void
a_size_that_was_not_set_is_refused(void **state)
{
	static const size_t sizes[] = {0, 7, 65537, SIZE_MAX};
	unsigned char *bytes = malloc(ROOM);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(stat_of_size(sizes[i], bytes), REPL_E_INVAL);
		assert_non_null(strstr(repl_errormsg(), "struct_size"));
		assert_all(bytes, 8, ROOM, UNTOUCHED);
	}
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_stay_where_they_are),
		cmocka_unit_test(each_gets_what_it_knows_of),
		cmocka_unit_test(a_size_that_was_not_set_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
