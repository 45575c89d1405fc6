/* SPDX-License-Identifier: BSD-3-Clause */
#include "stall.h"

#define LOOKS 8U /* at the bytes, within the limit */

bool
stall_over(struct stall *s, const struct fab_lane *fab, uint64_t now_ns)
{
	uint64_t pause_ns = s->limit_ns / LOOKS, bytes;
	bool late;

	/* Where events come none is needed: it costs more than all of them. */
	if (now_ns - s->moved_ns >= pause_ns && now_ns - s->looked_ns >= pause_ns) {
		bytes = fab_lane_moved(fab);
		/* Who comes to it too late for a second look has none to compare it with. */
		late = !s->looked_ns && now_ns - s->moved_ns >= s->limit_ns;
		if (late || (s->looked_ns && bytes != s->bytes))
			s->moved_ns = now_ns;
		s->bytes = bytes;
		s->looked_ns = now_ns;
	}
	return now_ns - s->moved_ns >= s->limit_ns;
}
