/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device is said to flush only if it has the capability, registers the pool for it and makes a
 * queue pair that asks for it; else the first of these that it refuses is named. All that was made
 * is gone after.
 */
#include "unit.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "fabric_flush.h"

/* ---- a device, which refuses what it is told to ---- */

enum refusal { NOTHING, OPENING, ASKING, CAPABILITY, DOMAIN, REGION, QUEUE, QUEUE_PAIR };

struct ibv_device {
	const char *name;
};

static struct ibv_device other = {"mlx9_0"}, mine = {"rxe0"};
static enum refusal refusal;
static int made; /* and not yet given back */
static char handle;

static void *
give(enum refusal r, int error)
{
	if (refusal == r) {
		errno = error;
		return NULL;
	}
	made++;
	return &handle;
}

static int
take(const void *p)
{
	assert_ptr_equal(p, &handle);
	made--;
	return 0;
}

struct ibv_device **
ibv_get_device_list(int *count)
{
	static struct ibv_device *list[] = {&other, &mine, NULL};

	assert_null(count);
	made++;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	assert_non_null(list);
	made--;
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	assert_ptr_equal(device, &mine);
	return give(OPENING, EACCES);
}

int
ibv_close_device(struct ibv_context *context)
{
	return take(context);
}

int
ibv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr)
{
	assert_ptr_equal(context, &handle);
	assert_null(input);
	/* All but the one that is needed. */
	attr->device_cap_flags_ex =
		~(refusal == CAPABILITY ? IB_UVERBS_DEVICE_FLUSH_PERSISTENT : 0);
	return refusal == ASKING ? ENOSYS : 0;
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	assert_ptr_equal(context, &handle);
	return give(DOMAIN, ENOMEM);
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	return take(pd);
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	assert_ptr_equal(pd, &handle);
	assert_non_null(addr);
	assert_int_equal(len, 4096);
	assert_true(access & IBV_ACCESS_FLUSH_PERSISTENT);
	return give(REGION, EOPNOTSUPP);
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	return take(mr);
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	      struct ibv_comp_channel *channel, int vector)
{
	assert_ptr_equal(context, &handle);
	assert_true(cqe > 0 && !cq_context && !channel && vector == 0);
	return give(QUEUE, ENOMEM);
}

int
ibv_destroy_cq(struct ibv_cq *cq)
{
	return take(cq);
}

struct ibv_qp *
ibv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	assert_ptr_equal(context, &handle);
	assert_ptr_equal(attr->pd, &handle);
	assert_ptr_equal(attr->send_cq, &handle);
	assert_int_equal(attr->comp_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
	assert_int_equal(attr->qp_type, IBV_QPT_RC);
	assert_true(attr->send_ops_flags & IBV_QP_EX_WITH_FLUSH);
	return give(QUEUE_PAIR, EOPNOTSUPP);
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	return take(qp);
}

/* ---- the tests ---- */

static const struct {
	enum refusal refusal;
	const char *text;
} refusals[] = {
	{OPENING, "rxe0: libibverbs can't open it"},
	{ASKING, "rxe0: the device does not flush to persistence"},
	{CAPABILITY, "rxe0: the device does not flush to persistence"},
	{DOMAIN, "rxe0: no protection domain"},
	{REGION, "rxe0: registering the pool for a persistent flush: Operation not supported"},
	{QUEUE, "rxe0: a queue pair that flushes: Cannot allocate memory"},
	{QUEUE_PAIR, "rxe0: a queue pair that flushes: Operation not supported"},
};

static void
the_first_refusal_is_named(void **state)
{
	static char page[4096];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		refusal = refusals[i].refusal;
		err_clear(&e);
		assert_int_equal(flush_device_probe("rxe0", page, sizeof(page), &e),
				 REPL_E_REFUSED);
		assert_string_equal(e.text, refusals[i].text);
		assert_int_equal(made, 0);
	}
}

static void
a_device_that_takes_it_all_flushes(void **state)
{
	static char page[4096];
	struct err e;

	(void)state;
	refusal = NOTHING;
	err_clear(&e);
	assert_int_equal(flush_device_probe("rxe0", page, sizeof(page), &e), 0);
	assert_int_equal(made, 0);
	assert_int_equal(flush_device_probe("rxe0", NULL, 0, &e), REPL_E_REFUSED);
	assert_string_equal(e.text, "rxe0: no pool is mapped whose region could be tried");
	assert_int_equal(flush_device_probe("rxe1", page, sizeof(page), &e), REPL_E_REFUSED);
	assert_string_equal(e.text, "rxe1: libibverbs can't open it");
	assert_int_equal(made, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_refusal_is_named),
		cmocka_unit_test(a_device_that_takes_it_all_flushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
