/* SPDX-License-Identifier: BSD-3-Clause */
#include "localmem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "holes.h"
#include "words.h"

#define PAGE 4096U

/* Up to what can't be touched; all of it where that can't be asked for. */
static size_t
peek_at(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t done = 0, most = len;

	while (done < len) {
		size_t page = PAGE - (uintptr_t)(from + done) % PAGE;
		size_t n = len - done < most ? len - done : most;
		struct iovec there = {.iov_base = (void *)(uintptr_t)(from + done), .iov_len = n};
		struct iovec here = {.iov_base = to + done, .iov_len = n};
		ssize_t got = process_vm_readv(gettid(), &here, 1, &there, 1, 0);

		if (got > 0) {
			done += (size_t)got;
		} else if (got < 0 && errno != EFAULT) {
			words_load(to + done, from + done, len - done);
			return len;
		} else if (n <= page) {
			break;
		} else {
			/* It need not tell how many there are before one that is not. */
			most = page;
		}
	}
	return done;
}

/*
 * The system's copy takes words apart, too, that the program stores meanwhile: where the range, or
 * the place that it is copied to, begins amid a word. Measured, of both at a word none was.
 */
static size_t
peek(uint8_t *to, const uint8_t *from, size_t len)
{
	_Alignas(WORDS_SIZE) uint8_t words[PAGE];
	size_t done = peek_at(to, from, words_before(from, len)), n, got;
	bool there = done == words_before(from, len);

	for (; there && done < len; done += got) {
		bool even = (uintptr_t)(to + done) % WORDS_SIZE == 0;

		n = even || len - done < sizeof(words) ? len - done : sizeof(words);
		got = peek_at(even ? to + done : words, from + done, n);
		if (!even)
			memcpy(to + done, words, got);
		there = got == n;
	}
	return done;
}

/* By the file's size: a disk that can't be read gives no bytes either. */
static int
has_by_size(const struct localmem *m, uint64_t off, uint64_t len, uint64_t *has, struct err *e)
{
	struct stat st;
	uint64_t size;

	if (stat(m->file, &st) || !holes_mapped_at(m->mem, &st)) {
		(void)err_set(e, REPL_E_IO,
			      "byte %" PRIu64 " of the local pool can't be read, and '%s' is not "
			      "its file any more",
			      off, m->file);
		return err_because(e, REPL_REASON_LOCAL);
	}
	size = (uint64_t)st.st_size;
	*has = size <= off ? 0 : size - off < len ? size - off : len;
	return 0;
}

int
localmem_read(const struct localmem *m, void *to, size_t len, uint64_t off, size_t *got,
	      struct err *e)
{
	uint64_t has = 0;
	int rc;

	*got = len;
	if (!m->file) {
		words_load(to, m->mem + off, len);
		return 0;
	}
	*got = peek(to, m->mem + off, len);
	if (*got == len)
		return 0;
	rc = has_by_size(m, off, len, &has, e);
	if (rc || has <= *got)
		return rc;
	(void)err_set(e, REPL_E_IO, "byte %" PRIu64 " of the local pool can't be read", off + *got);
	return err_because(e, REPL_REASON_LOCAL);
}

int
localmem_has(const struct localmem *m, uint64_t off, uint64_t len, uint64_t *has, struct err *e)
{
	uint8_t last;

	*has = len;
	if (!m->file || len == 0 || peek(&last, m->mem + off + len - 1, 1) == 1)
		return 0;
	return has_by_size(m, off, len, has, e);
}
