/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmemobj_fill - a program of libpmemobj's: fills a pool by transactions, and
 * walks it to see that all of it is there.
 *
 *   pmemobj_fill fill FILE LAYOUT COUNT    add COUNT objects, print count and checksum
 *   pmemobj_fill stream FILE LAYOUT COUNT  the same, making the pool if there is none, and
 *                                          print the count after each transaction
 *   pmemobj_fill steps FILE LAYOUT COUNT   the same by a transaction an object, in a larger pool
 *   pmemobj_fill paced FILE LAYOUT COUNT   as steps, a thousand a second at most, so that it does
 *                                          not come to an end meanwhile; SIGTERM ends it
 *   pmemobj_fill check FILE LAYOUT         walk all objects, print count and checksum
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpmemobj.h>

#define PER_TX    16 /* objects added by one transaction */
#define NODE_MAX  900
#define POOL_SIZE (8UL << 20) /* the least of libpmemobj */

struct node {
	PMEMoid next;
	uint64_t number;
	uint64_t check;
	uint64_t size;
	uint8_t data[];
};

struct root {
	PMEMoid head;
	uint64_t count;
	uint64_t sum; /* of all nodes' checks */
};

static volatile sig_atomic_t ended;

static void
end_it(int sig)
{
	(void)sig;
	ended = 1;
}

static uint64_t
node_check(const struct node *n)
{
	uint64_t sum = 1469598103934665603ULL ^ n->number;

	for (uint64_t i = 0; i < n->size; i++)
		sum = (sum ^ n->data[i]) * 1099511628211ULL;
	return sum;
}

/* In a transaction; an error aborts it. */
static void
node_add(PMEMoid root_oid, struct root *root)
{
	uint64_t number = root->count + 1;
	uint64_t size = 1 + number * 2654435761U % NODE_MAX;
	PMEMoid oid = pmemobj_tx_alloc(sizeof(struct node) + size, 1);
	struct node *n = pmemobj_direct(oid);

	(void)pmemobj_tx_add_range(root_oid, 0, sizeof(*root));
	n->next = root->head;
	n->number = number;
	n->size = size;
	for (uint64_t i = 0; i < size; i++)
		n->data[i] = (uint8_t)(number * 31 + i * 7);
	n->check = node_check(n);
	root->head = oid;
	root->count = number;
	root->sum += n->check;
}

static int
fill(PMEMobjpool *pop, uint64_t count, bool tell, int per_tx, useconds_t pause_us)
{
	PMEMoid oid = pmemobj_root(pop, sizeof(struct root));
	struct root *root = pmemobj_direct(oid);
	uint64_t end;

	if (!root)
		return 1;
	end = root->count + count;
	while (root->count < end && !ended) {
		TX_BEGIN(pop)
		{
			for (int i = 0; i < per_tx && root->count < end; i++)
				node_add(oid, root);
		}
		TX_ONABORT
		{
			(void)fprintf(stderr, "transaction: %s\n", pmemobj_errormsg());
			end = 0;
		}
		TX_END
		if (tell) {
			(void)printf("%" PRIu64 "\n", root->count);
			(void)fflush(stdout);
		}
		if (pause_us)
			(void)usleep(pause_us);
	}
	(void)printf("%" PRIu64 " %016" PRIx64 "\n", root->count, root->sum);
	return end == 0;
}

static int
check(PMEMobjpool *pop)
{
	const struct root *root = pmemobj_direct(pmemobj_root(pop, sizeof(struct root)));
	uint64_t left, sum = 0;
	PMEMoid at;

	if (!root)
		return 1;
	at = root->head;
	for (left = root->count; left > 0 && !OID_IS_NULL(at); left--) {
		const struct node *n = pmemobj_direct(at);

		if (n->number != left || n->size > NODE_MAX || n->check != node_check(n)) {
			(void)fprintf(stderr, "object %" PRIu64 " is damaged\n", left);
			return 1;
		}
		sum += n->check;
		at = n->next;
	}
	if (left > 0 || !OID_IS_NULL(at) || sum != root->sum) {
		(void)fprintf(stderr, "the list of %" PRIu64 " objects is damaged\n", root->count);
		return 1;
	}
	(void)printf("%" PRIu64 " %016" PRIx64 "\n", root->count, sum);
	return 0;
}

int
main(int argc, char **argv)
{
	bool paced = argc == 5 && strcmp(argv[1], "paced") == 0;
	bool steps = paced || (argc == 5 && strcmp(argv[1], "steps") == 0);
	bool stream = steps || (argc == 5 && strcmp(argv[1], "stream") == 0);
	bool filling = stream || (argc == 5 && strcmp(argv[1], "fill") == 0);
	PMEMobjpool *pop;
	int rc;

	if (!filling && (argc != 4 || strcmp(argv[1], "check") != 0)) {
		(void)fputs("usage: pmemobj_fill fill|stream|steps|paced FILE LAYOUT COUNT | check "
			    "FILE LAYOUT\n",
			    stderr);
		return 2;
	}
	if (paced)
		(void)signal(SIGTERM, end_it);
	if (stream && access(argv[2], F_OK) != 0)
		pop = pmemobj_create(argv[2], argv[3], steps ? 8 * POOL_SIZE : POOL_SIZE, 0600);
	else
		pop = pmemobj_open(argv[2], argv[3]);
	if (!pop) {
		int errnum = errno;

		(void)fprintf(stderr, "%s: %s (%s)\n", argv[2], pmemobj_errormsg(),
			      strerror(errnum));
		return 1;
	}
	rc = filling ? fill(pop, strtoull(argv[4], NULL, 10), stream, steps ? 1 : PER_TX,
			    paced ? 1000 : 0)
		     : check(pop);
	pmemobj_close(pop);
	return rc;
}
