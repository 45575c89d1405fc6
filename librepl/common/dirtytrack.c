/* SPDX-License-Identifier: BSD-3-Clause */
#include "dirtytrack.h"

void
dirtytrack_begin(struct dirtytrack *t)
{
	t->untrusted = t->suspect;
	t->epoch++;
}

void
dirtytrack_go_on(struct dirtytrack *t, const struct gen_id *base)
{
	if (gen_id_equal(&t->base, base))
		return;
	t->base = *base;
	t->untrusted = true;
}

void
dirtytrack_rebase(struct dirtytrack *t, const struct gen_id *base)
{
	t->base = *base;
	t->suspect = t->untrusted = false;
}

void
dirtytrack_end(struct dirtytrack *t)
{
	t->suspect = t->untrusted = false;
}

bool
dirtytrack_speaks_of(const struct dirtytrack *t, const struct gen_id *current)
{
	return !t->untrusted && !gen_id_is_nil(&t->base) && gen_id_equal(&t->base, current);
}
