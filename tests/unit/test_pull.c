/* SPDX-License-Identifier: BSD-3-Clause */
/* What is read of a replica comes to its place in the file, or the caller is told. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>

#include <sys/uio.h>

static ssize_t file_pwritev(int fd, const struct iovec *iov, int n, off_t off);

#define pwritev file_pwritev
#include "../../librepl/src/pull.c"
#undef pwritev
#include "../../librepl/src/stall.c"

#define POOL (40ULL << 20)

#define LANES 3U

static struct lane lane;
static struct lane fetchers[LANES]; /* of reads by windows */
static struct lane_terms terms;
static uint64_t far_ns; /* that one of those takes */
static struct {
	uint8_t *dst;
	uint64_t off, len;
} flight[SLOTS];
static unsigned head, count;
static unsigned left;          /* reads until the connection is lost */
static uint64_t read_max;      /* bytes of one */
static uint64_t write_max;     /* bytes that a write takes at once */
static unsigned write_count;   /* of them, */
static unsigned write_cut;     /* those that end within WRITE */
static unsigned write_min_len; /* the shortest of the others */

#define LEAST_NS (10 * NS_PER_MS) /* between two breaths */

static uint64_t slow_ns;      /* that a write takes */
static unsigned slow_breaths; /* ... until so many were taken */
static uint64_t here_ns;      /* nothing comes before */
static unsigned here_breaths; /* ... nor before so many were taken */
static bool polled_none;      /* as the last look at the lane said */
static _Atomic unsigned breaths;
static unsigned last; /* that breath ends the wait; 0: none does */
static unsigned timeout_ms = 10000;
static unsigned closed;                 /* how often the lanes were */
static uint64_t moved_by, moved_so_far; /* each look at the bytes finds so many more */

static bool
is_here(void)
{
	return clock_now_ns() >= here_ns && breaths >= here_breaths;
}

static int
take(void *arg, struct err *e)
{
	(void)arg;
	return ++breaths == last ? err_set(e, REPL_E_FAILED, "enough") : 0;
}

static const struct breath breath = {.take = take};

static uint8_t
byte_at(uint64_t off)
{
	return (uint8_t)((off / 4096 * 14 + off % 251 * 2) | 1);
}

static void
fill(uint8_t *dst, uint64_t off, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		dst[i] = byte_at(off + i);
}

struct lane *
remote_lane(struct remote *r, unsigned i)
{
	(void)r;
	assert_in_range(i, 0, LANES - 1);
	return terms.window ? &fetchers[i] : &lane;
}

const struct lane_terms *
remote_terms(const struct remote *r)
{
	(void)r;
	return &terms;
}

unsigned
remote_op_timeout_ms(const struct remote *r)
{
	(void)r;
	return timeout_ms;
}

/* Nothing is under way any more. */
void
remote_free_lanes(struct remote *r)
{
	(void)r;
	closed++;
}

int
remote_read(struct remote *r, unsigned i, void *buf, uint64_t off, uint64_t len,
	    uint64_t deadline_ns, struct err *e)
{
	(void)r;
	(void)i;
	(void)deadline_ns;
	if (left == 0)
		return err_set(e, REPL_E_LOST, "gone");
	left--;
	fill(buf, off, len);
	return 0;
}

/* The last bytes that a write doesn't take come in another one. */
static ssize_t
file_pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
	struct iovec some[WRITE_SLOTS];
	uint64_t len = 0;
	int i;

	for (i = 0; i < n && len < write_max; i++) {
		some[i] = iov[i];
		if (some[i].iov_len > write_max - len)
			some[i].iov_len = write_max - len;
		len += some[i].iov_len;
	}
	write_count++;
	do
		(void)usleep((unsigned)(slow_ns / 1000));
	while (breaths < slow_breaths);
	if (((uint64_t)off + len) % WRITE)
		write_cut++;
	else if (len < write_min_len)
		write_min_len = (unsigned)len;
	return pwritev(fd, some, i, off);
}

/* A pool of 40 MiB, of which a read has no more than read_max. */
uint64_t
lane_rma_len(const struct lane *l, uint64_t off, uint64_t len)
{
	uint64_t most = off < POOL ? POOL - off : 0;

	(void)l;
	most = most < read_max ? most : read_max;
	return len < most ? len : most;
}

void
lane_register(struct lane *l, uint64_t off)
{
	(void)off;
	assert_int_equal(count, 0);
	regions_set_ready(l->regions, 0);
}

bool
lane_done(const struct lane *l)
{
	return l->status || l->phase == LANE_IDLE;
}

int
lane_fetch(struct lane *l, void *dst, uint64_t off, uint64_t len)
{
	assert_true(lane_done(l));
	assert_in_range(len, 1, terms.window);
	if (l->status)
		return l->status;
	l->fetch = (struct lane_fetch){.dst = dst, .off = off, .len = (uint32_t)len};
	l->phase = LANE_FETCH;
	return 0;
}

/* The newest comes first. */
int
lanes_run_while_moving(struct lane **lanes, unsigned n, bool (*until)(const struct lane *),
		       uint64_t stall_ns, const struct breath *b, struct err *e)
{
	struct lane *l = lanes[n - 1];
	int rc = 0;

	assert_int_equal(stall_ns, timeout_ms * NS_PER_MS);
	assert_in_range(n, 1, LANES);
	for (unsigned i = 0; i < n; i++)
		assert_false(until(lanes[i]));
	while (!rc && !is_here()) {
		(void)usleep(1000);
		rc = breath_take(b, e);
	}
	(void)usleep((unsigned)(far_ns / 1000));
	if (rc)
		return rc;
	if (left == 0) {
		l->status = REPL_E_LOST;
		return 0;
	}
	left--;
	fill(l->fetch.dst, l->fetch.off, l->fetch.len);
	l->phase = LANE_IDLE;
	return 0;
}

int
lane_run_while_moving(struct lane *l, bool (*until)(const struct lane *), uint64_t stall_ns,
		      const struct breath *b, struct err *e)
{
	(void)l;
	(void)until;
	(void)b;
	(void)e;
	assert_int_equal(stall_ns, timeout_ms * NS_PER_MS);
	return 0;
}

uint64_t
fab_lane_moved(const struct fab_lane *l)
{
	(void)l;
	moved_so_far += moved_by;
	return moved_so_far;
}

int
fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e)
{
	unsigned i = (head + count) % SLOTS;

	(void)l;
	(void)e;
	assert_in_range(count, 0, SLOTS - 1);
	flight[i].dst = dst;
	flight[i].off = off;
	flight[i].len = len;
	count++;
	return 0;
}

void
fab_lane_poll(struct fab_lane *l, struct fab_event *ev)
{
	(void)l;
	ev->type = is_here() ? FAB_CLOSED : FAB_NONE;
	polled_none = ev->type == FAB_NONE;
	ev->text[0] = '\0';
	if (ev->type == FAB_NONE)
		return;
	if (left == 0)
		return;
	assert_int_not_equal(count, 0);
	left--;
	fill(flight[head].dst, flight[head].off, flight[head].len);
	head = (head + 1) % SLOTS;
	count--;
	ev->type = FAB_READ;
}

void
fab_lanes_wait(struct fab_lane **lanes, unsigned n, int wake_fd, uint64_t deadline_ns)
{
	(void)lanes;
	(void)n;
	(void)wake_fd;
	assert_true(polled_none);
	assert_in_range(deadline_ns, 1, clock_now_ns() + BREATH_NS);
	(void)usleep(1000);
}

static void
begin(unsigned reads, bool window)
{
	static struct regions regions;

	head = count = 0;
	left = reads;
	read_max = 300000;
	write_max = UINT64_MAX;
	write_count = write_cut = 0;
	write_min_len = UINT32_MAX;
	slow_ns = here_ns = 0;
	slow_breaths = here_breaths = last = 0;
	breaths = 0;
	memset(&lane, 0, sizeof(lane));
	memset(fetchers, 0, sizeof(fetchers));
	terms = (struct lane_terms){.lanes = LANES};
	far_ns = 0;
	regions_fini(&regions);
	assert_int_equal(regions_init(&regions, 1U << 30, POOL, NULL), 0);
	lane.regions = &regions;
	lane.window = window;
	for (unsigned i = 0; i < LANES; i++)
		fetchers[i].regions = &regions;
}

static int
file_new(void)
{
	FILE *f = tmpfile();
	int fd;

	assert_non_null(f);
	fd = dup(fileno(f));
	assert_int_equal(fclose(f), 0);
	assert_int_equal(ftruncate(fd, (off_t)POOL), 0);
	return fd;
}

/* Bytes of the range that came, none of which is a zero; the others are. */
static uint64_t
arrived(int fd, uint64_t off, uint64_t len)
{
	uint8_t *buf = malloc(len);
	uint64_t sum = 0;

	assert_non_null(buf);
	assert_int_equal(pread(fd, buf, len, (off_t)off), len);
	for (uint64_t i = 0; i < len; i++) {
		if (buf[i] == 0)
			continue;
		if (buf[i] != byte_at(off + i))
			fail_msg("byte %llu", (unsigned long long)(off + i));
		sum++;
	}
	free(buf);
	return sum;
}

static void
check_all(bool window, uint64_t most)
{
	struct pull *p;
	struct err e;
	int fd = file_new();

	begin(1000, window);
	write_max = most;
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	assert_int_equal(pull_range(p, 4096, 20 << 20, &e), 0);
	assert_int_equal(pull_range(p, 30 << 20, 4096, &e), 0);
	assert_int_equal(pull_range(p, POOL - 5000, 5000, &e), 0);
	assert_int_equal(pull_settle(p, &e), 0);
	assert_int_equal(arrived(fd, 0, POOL), (20 << 20) + 4096 + 5000);
	assert_int_equal(arrived(fd, 4096, 20 << 20), 20 << 20);
	assert_int_equal(arrived(fd, 30 << 20, 4096), 4096);
	assert_int_equal(arrived(fd, POOL - 5000, 5000), 5000);
	pull_end(p);
	(void)close(fd);
}

static void
test_all_comes_to_its_place(void **state)
{
	(void)state;
	check_all(false, UINT64_MAX);
	check_all(true, UINT64_MAX);
	check_all(false, 70001);
}

/* A huge page that is filled by one write is not cleared before. */
static void
test_writes_fill_huge_pages(void **state)
{
	int fd = file_new();
	struct pull *p;
	struct err e;

	(void)state;
	begin(1000, false);
	read_max = POOL;
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	/* From the middle of a page into that of another one. */
	assert_int_equal(pull_range(p, 4096, (20 << 20) + 8192, &e), 0);
	assert_int_equal(pull_settle(p, &e), 0);
	assert_int_equal(write_count, 11);
	assert_int_equal(write_cut, 1);
	assert_int_equal(write_min_len, WRITE - 4096);
	assert_int_equal(arrived(fd, 0, POOL), (20 << 20) + 8192);
	pull_end(p);
	(void)close(fd);
}

static void
test_a_full_disk_is_told(void **state)
{
	int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	struct pull *p;
	struct err e;
	int rc;

	(void)state;
	assert_true(fd >= 0);
	begin(1000, false);
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	/* Of one chunk only the settling can tell. */
	assert_int_equal(pull_range(p, 0, 4096, &e), 0);
	assert_int_equal(pull_settle(p, &e), REPL_E_NOSPC);
	pull_end(p);
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	rc = pull_range(p, 0, POOL, &e);
	assert_int_equal(rc, REPL_E_NOSPC);
	assert_non_null(strstr(e.text, "to the local file"));
	pull_end(p);
	(void)close(fd);
}

static void
test_what_came_before_a_loss_is_kept(void **state)
{
	int fd = file_new();
	struct pull *p;
	struct err e;

	(void)state;
	begin(20, false);
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	assert_int_equal(pull_range(p, 0, POOL, &e), REPL_E_LOST);
	pull_end(p);
	/* No read goes beyond a MiB: four of each. */
	assert_int_equal(arrived(fd, 0, 5 << 20), 5 << 20);
	assert_int_equal(arrived(fd, 0, POOL), 5 << 20);
	(void)close(fd);
}

static void
test_a_smaller_replica_is_told(void **state)
{
	int fd = file_new();
	struct pull *p;
	struct err e;

	(void)state;
	begin(1000, false);
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	assert_int_equal(pull_range(p, POOL - 4096, 8192, &e), REPL_E_INVAL);
	pull_end(p);
	(void)close(fd);
}

/* For a link or a file: the target hears from whoever waits, and who does not want to go on ends
 * it. */
static void
test_whoever_waits_breathes(void **state)
{
	int fd = file_new();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		uint64_t begin_ns;
		struct pull *p;
		struct err e;

		begin(1000, false);
		slow_ns = i % 2 ? 30 * NS_PER_MS : 0;
		slow_breaths = i % 2 ? 2 : 0;
		here_breaths = i % 2 ? 0 : 3;
		last = i < 2 ? 0 : 2;
		begin_ns = clock_now_ns();
		err_clear(&e);
		assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
		assert_int_equal(pull_range(p, 0, 4096, &e), 0);
		assert_int_equal(pull_settle(p, &e), last ? REPL_E_FAILED : 0);
		assert_in_range(breaths, 2, last ? 2 : 2 + (clock_now_ns() - begin_ns) / LEAST_NS);
		pull_end(p);
		assert_int_equal(arrived(fd, 0, 4096), 4096);
	}
	(void)close(fd);
}

/* An interrupt over a link that is slow, or to a target that sends a byte now and then. */
static void
test_who_gives_up_waits_for_nothing_slow(void **state)
{
	int fd = file_new();

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t begin_ns = clock_now_ns();
		struct pull *p;
		struct err e;

		begin(1000, false);
		terms.window = i ? CHUNK : 0;
		closed = 0;
		here_ns = begin_ns + 6 * NS_PER_S;
		moved_by = 1;
		last = 1;
		err_clear(&e);
		assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
		assert_int_equal(pull_range(p, 0, 4096, &e), 0);
		assert_int_equal(pull_settle(p, &e), REPL_E_FAILED);
		pull_end(p);
		assert_in_range(clock_now_ns() - begin_ns, 0, 4 * NS_PER_S);
		assert_int_equal(closed, 1);
	}
	(void)close(fd);
}

/*
 * A chunk may take longer than any request over a slow link, as long as its bytes move; and one of
 * which none does ends by then, and who copies by a deadline of its own by that.
 */
static void
test_a_slow_link_is_no_dead_one(void **state)
{
	static const struct {
		unsigned here_ms, deadline_ms;
		uint64_t moved_by;
		int rc;
	} rows[] = {{300, 0, 1, 0}, {1000, 0, 0, REPL_E_TIMEOUT}, {1000, 200, 1, REPL_E_TIMEOUT}};
	int fd = file_new();

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t begin_ns = clock_now_ns(), deadline_ns;
		struct pull *p;
		struct err e;

		begin(1000, false);
		timeout_ms = 100;
		moved_by = rows[i].moved_by;
		here_ns = begin_ns + rows[i].here_ms * NS_PER_MS;
		deadline_ns = rows[i].deadline_ms ? begin_ns + rows[i].deadline_ms * NS_PER_MS : 0;
		err_clear(&e);
		assert_int_equal(pull_begin(NULL, 0, fd, deadline_ns, breath, &p, &e), 0);
		assert_int_equal(pull_range(p, 0, 4096, &e), 0);
		assert_int_equal(pull_settle(p, &e), rows[i].rc);
		if (rows[i].rc)
			assert_true(clock_now_ns() < here_ns);
		moved_by = 0;
		pull_end(p);
	}
	timeout_ms = 10000;
	(void)close(fd);
}

/* By the windows of several lanes, in whatever order these come. */
static void
test_fetches_come_to_their_place(void **state)
{
	static const size_t windows[] = {CHUNK, 100000};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int fd = file_new();
		struct pull *p;
		struct err e;

		begin(1000, false);
		terms.window = windows[i];
		err_clear(&e);
		assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
		assert_int_equal(pull_range(p, 4096, 6 << 20, &e), 0);
		assert_int_equal(pull_range(p, POOL - 5000, 5000, &e), 0);
		assert_int_equal(pull_settle(p, &e), 0);
		assert_int_equal(arrived(fd, 0, POOL), (6 << 20) + 5000);
		assert_int_equal(arrived(fd, 4096, 6 << 20), 6 << 20);
		assert_int_equal(arrived(fd, POOL - 5000, 5000), 5000);
		assert_int_equal(count, 0);
		pull_end(p);
		(void)close(fd);
	}
}

/*
 * With an RNIC that can't have the pool all reads go by windows, and that is no promise that one
 * has been read when it was asked for.
 */
static void
test_fetches_are_awaited_with_an_rnic(void **state)
{
	int fd = file_new();
	struct pull *p;
	struct err e;

	(void)state;
	begin(1000, false);
	terms.window = 65536;
	for (unsigned i = 0; i < LANES; i++)
		fetchers[i].window = true;
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	assert_int_equal(pull_range(p, 4096, 20 << 20, &e), 0);
	assert_int_equal(pull_settle(p, &e), 0);
	assert_int_equal(arrived(fd, 0, POOL), 20 << 20);
	assert_int_equal(arrived(fd, 4096, 20 << 20), 20 << 20);
	pull_end(p);
	(void)close(fd);
}

/* What came before is kept, and nobody writes to what is freed. */
static void
test_a_lost_fetch_is_told(void **state)
{
	int fd = file_new();
	struct pull *p;
	struct err e;

	(void)state;
	begin(9, false);
	terms.window = CHUNK;
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	assert_int_equal(pull_range(p, 0, POOL, &e), REPL_E_LOST);
	pull_end(p);
	for (unsigned i = 0; i < LANES; i++)
		assert_true(lane_done(&fetchers[i]));
	assert_in_range(arrived(fd, 0, 9 << 20), 6 << 20, 9 << 20);
	(void)close(fd);
}

/* Nothing is lost in the change. */
static void
test_far_away_it_goes_by_rma(void **state)
{
	int fd = file_new();
	struct pull *p;
	struct err e;

	(void)state;
	begin(1000, false);
	terms.window = CHUNK;
	far_ns = FAR_NS + 1000000;
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	assert_int_equal(pull_range(p, 0, 30 << 20, &e), 0);
	assert_int_equal(p->fetchers, 0);
	assert_int_equal(pull_settle(p, &e), 0);
	assert_int_equal(arrived(fd, 0, POOL), 30 << 20);
	pull_end(p);
	(void)close(fd);
}

/* With an RNIC that can't have the pool there is nothing else, but one read after the other. */
static void
test_far_away_an_rnic_keeps_its_windows(void **state)
{
	int fd = file_new();
	struct pull *p;
	struct err e;

	(void)state;
	begin(1000, false);
	terms.window = CHUNK;
	for (unsigned i = 0; i < LANES; i++)
		fetchers[i].window = true;
	far_ns = 2 * FAR_NS;
	err_clear(&e);
	assert_int_equal(pull_begin(NULL, 0, fd, 0, breath, &p, &e), 0);
	assert_int_equal(pull_range(p, 0, POOL, &e), 0);
	assert_int_equal(p->fetchers, LANES);
	assert_int_equal(pull_settle(p, &e), 0);
	assert_int_equal(arrived(fd, 0, POOL), POOL);
	pull_end(p);
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_comes_to_its_place),
		cmocka_unit_test(test_writes_fill_huge_pages),
		cmocka_unit_test(test_whoever_waits_breathes),
		cmocka_unit_test(test_who_gives_up_waits_for_nothing_slow),
		cmocka_unit_test(test_a_full_disk_is_told),
		cmocka_unit_test(test_what_came_before_a_loss_is_kept),
		cmocka_unit_test(test_a_smaller_replica_is_told),
		cmocka_unit_test(test_a_slow_link_is_no_dead_one),
		cmocka_unit_test(test_fetches_come_to_their_place),
		cmocka_unit_test(test_fetches_are_awaited_with_an_rnic),
		cmocka_unit_test(test_a_lost_fetch_is_told),
		cmocka_unit_test(test_far_away_it_goes_by_rma),
		cmocka_unit_test(test_far_away_an_rnic_keeps_its_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
