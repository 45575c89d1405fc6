/* SPDX-License-Identifier: BSD-3-Clause */
/* errormsg - the text of each thread's last error, the library's only state. */
#include "config.h"

#include <string.h>

static _Thread_local char last_text[ERR_TEXT_MAX];

const char *
repl_errormsg(void)
{
	return last_text;
}

int
config_report(const struct err *e)
{
	if (e->code != REPL_OK)
		memcpy(last_text, e->text, sizeof(last_text));
	return e->code;
}

int
config_report_set(int code, const char *text)
{
	struct err e;

	(void)err_set(&e, code, "%s", text);
	return config_report(&e);
}
