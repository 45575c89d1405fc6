/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <stdint.h>

#include "control.h"
#include "describe.h"
#include "reason.h"

#define WORD_MAX 32

struct json_object *
report_check(struct json_object *report)
{
	static const char *const numbers[] = {"lag_bytes",    "lag_ms",       "dirty_bytes",
					      "resync_total", "resync_done",  "resync_moved",
					      "resync_rate",  "resync_eta_ms"};
	struct json_object *o;
	const char *text;
	uint64_t value;
	bool paused;

	if (!json_object_is_type(report, json_type_object))
		return NULL;
	o = json_object_new_object();
	for (int a = 0; a < REASON_AXIS_COUNT; a++) {
		const char *key = reason_axis_key((enum reason_axis)a);

		if (control_get_text(report, key, WORD_MAX, &text, NULL) ||
		    reason_axis_value((enum reason_axis)a, text) < 0) {
			json_object_put(o);
			return NULL;
		}
		describe_add_text(o, key, text);
	}
	/* One that only later versions know is told as "failed". */
	if (control_get_text(report, "reason", WORD_MAX, &text, NULL) == 0)
		describe_add_text(o, "reason", reason_name((int)reason_by_name(text)));
	if (control_get_bool(report, "paused", &paused, NULL) == 0)
		describe_add_bool(o, "paused", paused);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (control_get_u64(report, numbers[i], 0, INT64_MAX, &value, NULL) == 0)
			describe_add_u64(o, numbers[i], value);
	if (control_complete(o))
		return o;
	json_object_put(o);
	return NULL;
}
