/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large writes are taken from the pool itself only if they are of it, where it may be registered
 * and once it pays; whatever is in the way makes them copies, for good, and is told.
 */
#include "unit.h"

#include <stdlib.h>

#include "../../librepl/common/fabric_source.c"

#define MIB   (1ULL << 20)
#define WRITE 65536U

/* ---- a machine that says no when it is asked to ---- */

static bool fork_safe, cached;
static int dax_rc, spare_rc, register_rc;
static unsigned dax_asked, registered, closed;
static struct {
	struct fid_mr mr;
	uint8_t *mem;
	size_t len;
} made[8];

bool
ofi_fork_safe(void)
{
	return fork_safe;
}

int
daxmap_check(const struct daxmap_from *from, const void *mem, size_t len, struct err *e)
{
	(void)from;
	(void)mem;
	(void)len;
	dax_asked++;
	return dax_rc ? err_set(e, dax_rc, "a file") : 0;
}

int
ofi_mem_spare(uint64_t len, struct err *e)
{
	(void)len;
	return spare_rc ? err_set(e, spare_rc, "locked memory") : 0;
}

int
ofi_mem_register(struct fid_domain *domain, void *mem, size_t len, uint64_t access,
		 struct fid_mr **out, struct err *e)
{
	(void)domain;
	assert_int_equal(access, FI_WRITE);
	if (register_rc)
		return err_set(e, register_rc, "no more registrations");
	assert_true(registered < 8);
	made[registered].mem = mem;
	made[registered].len = len;
	made[registered].mr.mem_desc = &made[registered];
	*out = &made[registered++].mr;
	return 0;
}

bool
ofi_mem_cached(struct fid_domain *domain, void *lane_mem, size_t len, struct fid_mr *as)
{
	assert_ptr_equal(lane_mem, domain);
	assert_int_equal(len, SOURCE_LEAST);
	assert_ptr_equal(as, lane_mem);
	return cached;
}

void
ofi_close(struct fid *fid)
{
	closed += fid != NULL;
}

static struct regions pool;
static uint8_t *mem;
static _Atomic uint64_t uncopied;

static void
begin(struct fab_source *s, uint64_t size)
{
	memset(s, 0, sizeof(*s));
	fork_safe = true;
	cached = false;
	dax_rc = spare_rc = register_rc = 0;
	dax_asked = registered = closed = 0;
	atomic_store(&uncopied, 0);
	/* Nobody touches it: only where it lies matters. */
	mem = (uint8_t *)(uintptr_t)0x100000000000ULL;
	assert_int_equal(regions_init(&pool, REGIONS_UNIT, size, NULL), 0);
	s->domain = (void *)s;
	s->lane_mem = s;
	s->lane_mr = (void *)s;
	s->stops = true;
	s->pool = &pool;
}

static void
end(struct fab_source *s)
{
	source_fini(s);
	assert_int_equal(closed, registered);
	regions_fini(&pool);
}

static bool
take(struct fab_source *s, uint64_t off, size_t len, void **desc)
{
	*desc = NULL;
	return source_take(s, mem + off, len, off, desc);
}

/* So much of the pool's beginning as copies. */
static void
copied(struct fab_source *s, uint64_t len)
{
	void *desc;

	for (uint64_t at = 0; at < len; at += WRITE)
		assert_false(take(s, 0, WRITE, &desc));
}

/* Told as copied, and for this reason. */
static void
is_off(const struct fab_source *s, const char *why)
{
	struct fab_source_info info;

	source_info(s, &info);
	assert_true(info.told);
	assert_false(info.pool);
	if (!strstr(info.why, why))
		fail_msg("'%s' is not in: %s", why, info.why);
}

static void
large_writes_of_the_pool_are_taken_from_it(void **state)
{
	struct fab_source s;
	struct fab_source_info info;
	void *desc;

	(void)state;
	begin(&s, 256 * MIB);
	source_begin(&s, mem, &uncopied);
	source_info(&s, &info);
	assert_true(info.told && info.pool);
	/* An eighth of a piece is copied before. */
	copied(&s, 8 * MIB - WRITE);
	assert_int_equal(registered, 0);
	assert_true(take(&s, 3 * WRITE, WRITE, &desc));
	assert_ptr_equal(desc, &made[0]);
	assert_ptr_equal(made[0].mem, mem);
	assert_int_equal(made[0].len, SOURCE_PIECE);
	assert_true(take(&s, 64 * MIB - WRITE, WRITE, &desc));
	assert_ptr_equal(desc, &made[0]);
	assert_int_equal(atomic_load(&uncopied), 2 * WRITE);
	/* Small ones, those of two pieces, and what is not the pool's. */
	assert_false(take(&s, 0, SOURCE_LEAST - 1, &desc));
	assert_true(take(&s, 0, SOURCE_LEAST, &desc));
	assert_false(take(&s, 64 * MIB - SOURCE_LEAST, WRITE, &desc));
	assert_false(source_take(&s, mem + WRITE, WRITE, 2 * WRITE, &desc));
	assert_false(source_take(&s, &s, WRITE, 0, &desc));
	assert_false(take(&s, 256 * MIB, WRITE, &desc));
	assert_false(take(&s, 256 * MIB - SOURCE_LEAST, WRITE, &desc));
	assert_int_equal(registered, 1);
	end(&s);
}

static void
what_is_not_allowed_is_copied_and_told(void **state)
{
	struct fab_source s;

	(void)state;
	begin(&s, 256 * MIB);
	fork_safe = false;
	source_begin(&s, mem, &uncopied);
	is_off(&s, "children");
	copied(&s, 64 * MIB);
	assert_int_equal(registered, 0);
	end(&s);

	begin(&s, 256 * MIB);
	s.stops = false;
	source_begin(&s, mem, &uncopied);
	is_off(&s, "can't be stopped");
	end(&s);

	begin(&s, 256 * MIB);
	dax_rc = REPL_E_REFUSED;
	source_begin(&s, mem, &uncopied);
	is_off(&s, "a file");
	copied(&s, 64 * MIB);
	assert_int_equal(dax_asked, 1);
	end(&s);

	begin(&s, 256 * MIB);
	spare_rc = REPL_E_LIMIT;
	source_begin(&s, mem, &uncopied);
	is_off(&s, "locked memory");
	end(&s);

	/* Of what libfabric caches the target could write to all. */
	begin(&s, 256 * MIB);
	cached = true;
	source_begin(&s, mem, &uncopied);
	is_off(&s, "let the target write");
	copied(&s, 64 * MIB);
	assert_int_equal(registered, 0);
	end(&s);

	/* The pool is another's, at another place. */
	begin(&s, 256 * MIB);
	source_begin(&s, mem, &uncopied);
	source_begin(&s, mem, &uncopied);
	source_begin(&s, mem + MIB, &uncopied);
	is_off(&s, "moved");
	end(&s);
}

static void
what_changes_later_ends_it(void **state)
{
	int *rcs[] = {&dax_rc, &spare_rc, &register_rc};
	struct fab_source s;
	void *desc;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin(&s, 256 * MIB);
		source_begin(&s, mem, &uncopied);
		copied(&s, 8 * MIB - WRITE);
		assert_true(take(&s, 0, WRITE, &desc));
		*rcs[i] = REPL_E_REFUSED;
		for (uint64_t at = 0; at < 64 * MIB; at += WRITE)
			assert_false(take(&s, 64 * MIB, WRITE, &desc));
		is_off(&s, i == 0 ? "a file" : i == 1 ? "locked memory" : "registrations");
		assert_int_equal(dax_asked, 3);
		/* What is registered is not used any more, and stays so: it may be in use. */
		assert_false(take(&s, 0, WRITE, &desc));
		assert_int_equal(registered, 1);
		assert_int_equal(closed, 0);
		end(&s);
	}
}

static void
new_parts_are_registered_as_pieces_of_their_own(void **state)
{
	struct fab_source s;
	void *desc;

	(void)state;
	begin(&s, MIB);
	source_begin(&s, mem, &uncopied);
	copied(&s, MIB / 8 - WRITE);
	assert_true(take(&s, 0, WRITE, &desc));
	assert_int_equal(made[0].len, MIB);
	assert_int_equal(regions_grow(&pool, 3 * MIB, NULL), 0);
	for (uint64_t at = WRITE; at < 2 * MIB / 8; at += WRITE)
		assert_false(take(&s, MIB, WRITE, &desc));
	assert_true(take(&s, 3 * MIB - WRITE, WRITE, &desc));
	assert_ptr_equal(made[1].mem, mem + MIB);
	assert_int_equal(made[1].len, 2 * MIB);
	assert_false(take(&s, MIB - SOURCE_LEAST, WRITE, &desc));
	end(&s);
}

static void
no_more_than_the_limit_is_registered(void **state)
{
	struct fab_source s;
	void *desc;

	(void)state;
	begin(&s, 1 << 20);
	source_begin(&s, mem, &uncopied);
	s.registered = SOURCE_MAX - MIB + 1;
	for (unsigned i = 0; i < 64; i++)
		assert_false(take(&s, 0, WRITE, &desc));
	s.registered--;
	assert_true(take(&s, 0, WRITE, &desc));
	end(&s);
}

static void
without_an_rnic_there_is_no_choice(void **state)
{
	struct fab_source_info info;
	struct fab_source s;
	void *desc;

	(void)state;
	begin(&s, MIB);
	s.domain = NULL;
	source_begin(&s, mem, &uncopied);
	source_info(&s, &info);
	assert_false(info.told);
	assert_false(take(&s, 0, WRITE, &desc));
	assert_int_equal(dax_asked, 0);
	end(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_writes_of_the_pool_are_taken_from_it),
		cmocka_unit_test(what_is_not_allowed_is_copied_and_told),
		cmocka_unit_test(what_changes_later_ends_it),
		cmocka_unit_test(new_parts_are_registered_as_pieces_of_their_own),
		cmocka_unit_test(no_more_than_the_limit_is_registered),
		cmocka_unit_test(without_an_rnic_there_is_no_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
