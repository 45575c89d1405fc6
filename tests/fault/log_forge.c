/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_forge - set bytes of a log's headers, with a checksum that is right.
 *
 * usage: log_forge FILE AT WIDTH VALUE
 *
 * FILE begins with the log. Both copies of the header get VALUE, WIDTH bytes at AT; offsets and
 * fields are those of docs/LOG-FORMAT.md.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"
#include "le.h"

#define HEADER 256U
#define SUM_AT 16U
#define COPY   4096

int
main(int argc, char **argv)
{
	int fd = argc == 5 ? open(argv[1], O_RDWR) : -1;
	unsigned at = argc == 5 ? (unsigned)strtoul(argv[2], NULL, 0) : HEADER;
	unsigned width = argc == 5 ? (unsigned)strtoul(argv[3], NULL, 0) : 0;
	uint64_t value = argc == 5 ? strtoull(argv[4], NULL, 0) : 0;

	if (fd < 0 || width > 8 || at > HEADER - width)
		return 2;
	for (off_t off = 0; off <= COPY; off += COPY) {
		uint8_t buf[HEADER];

		if (pread(fd, buf, sizeof(buf), off) != (ssize_t)sizeof(buf))
			return 1;
		for (unsigned i = 0; i < width; i++)
			buf[at + i] = (uint8_t)(value >> 8 * i);
		put_le64(buf + SUM_AT, 0);
		put_le64(buf + SUM_AT, sum64(buf, sizeof(buf)));
		if (pwrite(fd, buf, sizeof(buf), off) != (ssize_t)sizeof(buf))
			return 1;
	}
	return close(fd) ? 1 : 0;
}
