/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"

bool
watch_on_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* Lines are written over the old ones, and only what is left of those is cleared. */
void
watch_draw(const char *text)
{
	struct winsize w = {.ws_row = 24, .ws_col = 80};
	unsigned row = 0;

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
	if (w.ws_row < 2 || w.ws_col < 2)
		w = (struct winsize){.ws_row = 24, .ws_col = 80};
	(void)fputs("\033[H", stdout);
	while (*text && ++row < w.ws_row) {
		if (row + 1 == w.ws_row && strchr(text, '\n') && strchr(text, '\n')[1]) {
			(void)printf("... more, in a higher window\033[K\n");
			break;
		}
		size_t len = strcspn(text, "\n");
		size_t shown = len < w.ws_col ? len : (size_t)w.ws_col - 1;

		(void)printf("%.*s\033[K\n", (int)shown, text);
		text += len + (text[len] == '\n');
	}
	(void)fputs("\033[J", stdout);
	(void)fflush(stdout);
}

bool
watch_taken(void)
{
	struct pollfd p = {.fd = STDOUT_FILENO};

	return !ferror(stdout) && !(poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP));
}

bool
watch_wait(void)
{
	struct timespec left = {.tv_sec = 1};

	while (!interrupt_seen() && nanosleep(&left, &left) != 0)
		;
	return !interrupt_seen() && watch_taken();
}
