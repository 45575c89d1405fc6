/* SPDX-License-Identifier: BSD-3-Clause */
/* Of a set's replicas none gives what another one may have more of. */
#include "unit.h"

#include <string.h>

#include "setsource.h"

/* Generations by letters: "cba" is c, which descends from b and that from a; "" is none. */
struct known {
	const char *chain;
	enum sidecar_state state;
	bool waited;
};

#define NEW  SIDECAR_UP_TO_DATE, true
#define LEFT SIDECAR_UNKNOWN, true
#define HALF SIDECAR_INCONSISTENT, true
#define OUT  SIDECAR_OUTDATED, true
#define BACK SIDECAR_UP_TO_DATE, false /* demoted */

static struct sidecar
sidecar_of(const struct known *k)
{
	struct sidecar s = {.state = k->state, .waited = k->waited};

	for (size_t i = 0; i < strlen(k->chain); i++) {
		struct gen_id *id = i == 0 ? &s.generation.current : &s.generation.history[i - 1];

		id->b[0] = (uint8_t)k->chain[i];
	}
	return s;
}

/* clang-format off */
static const struct row {
	const char *what;
	struct known is, other;
	enum setsource verdict;
} rows[] = {
	{"the program was killed", {"a", LEFT}, {"a", LEFT}, SETSOURCE_WHOLE},
	{"the other was lost", {"ba", LEFT}, {"a", LEFT}, SETSOURCE_WHOLE},
	{"it was lost", {"a", LEFT}, {"ba", LEFT}, SETSOURCE_BEHIND},
	{"... and the other closed", {"a", LEFT}, {"ba", NEW}, SETSOURCE_BEHIND},
	{"... and the other is being copied into", {"a", LEFT}, {"ba", HALF}, SETSOURCE_BEHIND},
	{"it was not among those that were gone on with", {"a", NEW}, {"ba", NEW}, SETSOURCE_BEHIND},
	{"one was promoted beside the other", {"ca", NEW}, {"ba", LEFT}, SETSOURCE_DIVERGED},
	{"... which is closed", {"ca", LEFT}, {"ba", NEW}, SETSOURCE_DIVERGED},
	{"of writers that told nothing, lost", {"a", LEFT}, {"b", NEW}, SETSOURCE_UNTOLD},
	{"... both", {"a", LEFT}, {"b", LEFT}, SETSOURCE_UNTOLD},
	{"... closed", {"a", NEW}, {"b", LEFT}, SETSOURCE_WHOLE},
	{"... called closed by a demotion", {"a", BACK}, {"b", NEW}, SETSOURCE_UNTOLD},
	{"... the other one", {"a", NEW}, {"b", BACK}, SETSOURCE_WHOLE},
	{"the other is new", {"a", LEFT}, {"", NEW}, SETSOURCE_WHOLE},
	{"the other was never filled", {"a", LEFT}, {"", HALF}, SETSOURCE_WHOLE},
	{"it is new", {"", NEW}, {"a", LEFT}, SETSOURCE_BEHIND},
	{"both are", {"", NEW}, {"", NEW}, SETSOURCE_WHOLE},
	{"it was being brought back", {"ba", OUT}, {"ba", NEW}, SETSOURCE_BEHIND},
	{"... and the program was killed", {"ba", OUT}, {"ba", LEFT}, SETSOURCE_BEHIND},
	{"the other was being brought back", {"ba", LEFT}, {"ba", OUT}, SETSOURCE_WHOLE},
	{"both were", {"ba", OUT}, {"ba", OUT}, SETSOURCE_UNTOLD},
	{"... and the other was lost before that", {"ba", OUT}, {"a", LEFT}, SETSOURCE_WHOLE},
};
/* clang-format on */

static void
each_row_is_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sidecar is = sidecar_of(&rows[i].is), other = sidecar_of(&rows[i].other);

		if (setsource_judge(&is, &other) != rows[i].verdict)
			fail_msg("%s: %d", rows[i].what, (int)setsource_judge(&is, &other));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_row_is_judged)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
