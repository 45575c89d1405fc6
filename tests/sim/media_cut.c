/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * media_cut - after the kill: each file becomes what the media hold of it.
 *
 * usage: media_cut PATH [KEEP]
 *
 * See media_survival.h; the configuration is that of the environment, as for
 * repld-media.
 */
#include <stdio.h>
#include <stdlib.h>

#include "media_survival.h"

int
main(int argc, char **argv)
{
	struct err e;

	err_clear(&e);
	if (argc < 2 || argc > 3)
		return 2;
	if (media_cut(argv[1], argc > 2 ? strtoull(argv[2], NULL, 0) : 0, &e)) {
		(void)fprintf(stderr, "media_cut: %s\n", e.text);
		return 1;
	}
	return 0;
}
