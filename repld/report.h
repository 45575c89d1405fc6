/* SPDX-License-Identifier: BSD-3-Clause */
/* report - what an initiator says, with its pings, of the replica that it has open here. */
#ifndef REPLD_REPORT_H
#define REPLD_REPORT_H

#include <json-c/json.h>

/*
 * A new object of what is known and well formed in report: the axes, the reason and
 * the numbers, nothing else. NULL if the axes are not there: it is no report.
 */
struct json_object *report_check(struct json_object *report);

#endif
