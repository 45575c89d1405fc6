/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic - completions that mean no more than a NIC's do.
 *
 * Over tcp a write or message that is complete is in the target's memory. That of an RNIC
 * is in the RNIC's buffers, or even, of iWARP, on its way. Put in front of
 * fabric.h by the linker (--wrap), this says that it is complete as soon as
 * it has been posted; it goes on by itself, and is lost if it is on its way when
 * the target is killed. So what counts on a completion alone is found out, and
 * what waits for a read behind the write is not: reads are left as they are.
 *
 *   REPL_NIC_NO_READ=1   reads are not made, and said to be complete: shows that
 *                        a test would notice one that is missing.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

#define NIC_LANES 64U

/* Of a lane, used by one thread at a time as that is. */
struct nic {
	struct fab_lane *lane;
	unsigned early;   /* completions that are said before they come */
	unsigned pending; /* and are not said when they come */
};

static struct nic nics[NIC_LANES];
static pthread_mutex_t nics_lock = PTHREAD_MUTEX_INITIALIZER; /* which lane has which */

int __real_fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			  struct err *e);
int __real_fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off,
				  struct err *e);
int __real_fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			      const struct fab_imm *imm, struct err *e);
int __real_fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e);
int __real_fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e);
void __real_fab_lane_poll(struct fab_lane *l, struct fab_event *ev);
bool __real_fab_lane_more(const struct fab_lane *l);
void __real_fab_lane_free(struct fab_lane *l);

int __wrap_fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			  struct err *e);
int __wrap_fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off,
				  struct err *e);
int __wrap_fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			      const struct fab_imm *imm, struct err *e);
int __wrap_fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e);
int __wrap_fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e);
void __wrap_fab_lane_poll(struct fab_lane *l, struct fab_event *ev);
bool __wrap_fab_lane_more(const struct fab_lane *l);
void __wrap_fab_lane_free(struct fab_lane *l);

/* The lane's own, made if need be; aborts where there are too many lanes. */
static struct nic *
nic_of(const struct fab_lane *l)
{
	struct nic *found = NULL;

	(void)pthread_mutex_lock(&nics_lock);
	for (unsigned i = 0; i < NIC_LANES && (!found || found->lane != l); i++)
		if (nics[i].lane == l || (!found && !nics[i].lane))
			found = &nics[i];
	if (!found)
		abort();
	found->lane = (struct fab_lane *)(uintptr_t)l;
	(void)pthread_mutex_unlock(&nics_lock);
	return found;
}

static int
nic_posted(struct nic *n, int rc)
{
	n->early += rc == 0;
	n->pending += rc == 0;
	return rc;
}

int
__wrap_fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	return nic_posted(nic_of(l), __real_fab_lane_write(l, src, len, off, e));
}

int
__wrap_fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			      struct err *e)
{
	return nic_posted(nic_of(l), __real_fab_lane_write_covered(l, src, len, off, e));
}

int
__wrap_fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			  const struct fab_imm *imm, struct err *e)
{
	return nic_posted(nic_of(l), __real_fab_lane_write_imm(l, src, len, off, imm, e));
}

int
__wrap_fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e)
{
	return nic_posted(nic_of(l), __real_fab_lane_send_delivered(l, len, e));
}

int
__wrap_fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e)
{
	if (!getenv("REPL_NIC_NO_READ"))
		return __real_fab_lane_read(l, dst, len, off, e);
	memset(dst, 0, len);
	nic_of(l)->early++;
	return 0;
}

/* Who counts completions needs no other kind for a read or a message. */
void
__wrap_fab_lane_poll(struct fab_lane *l, struct fab_event *ev)
{
	struct nic *n = nic_of(l);

	if (n->early > 0) {
		n->early--;
		memset(ev, 0, sizeof(*ev));
		ev->type = FAB_WRITTEN;
		return;
	}
	for (;;) {
		__real_fab_lane_poll(l, ev);
		if ((ev->type != FAB_WRITTEN && ev->type != FAB_SENT) || n->pending == 0)
			return;
		n->pending--;
	}
}

bool
__wrap_fab_lane_more(const struct fab_lane *l)
{
	return nic_of(l)->early > 0 || __real_fab_lane_more(l);
}

void
__wrap_fab_lane_free(struct fab_lane *l)
{
	if (l)
		*nic_of(l) = (struct nic){0};
	__real_fab_lane_free(l);
}
