/* SPDX-License-Identifier: BSD-3-Clause */
#include "confirm.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

int
confirm(struct ctl *c, const char *question, const char *again)
{
	char answer[64] = "", clean[1024];

	if (c->options.force)
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		ctl_next(c, "%s", again);
		return err_set(&c->err, REPL_E_REFUSED,
			       "this destroys data and there is no terminal to confirm it on; "
			       "nothing was changed");
	}
	(void)snprintf(clean, sizeof(clean), "%s", question);
	text_clean(clean);
	(void)fprintf(stderr, "%s\nType yes to go on: ", clean);
	(void)fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		(void)fputc('\n', stderr);
	if (strcmp(answer, "yes\n") == 0)
		return 0;
	ctl_next(c, "%s", again);
	return err_set(&c->err, REPL_E_REFUSED, "not confirmed; nothing was changed");
}
