/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hashwalk - which blocks differ between here and the replica, by their hashes.
 *
 * The walker asks for pieces, has the target hash them ahead while this side
 * hashes what is in hand, and tells the runs of blocks that differ. Where all
 * differ it stops comparing for growing stretches and calls them different, so
 * that a full copy is not slowed by hashing. The calling thread alone uses the
 * remote's control channel meanwhile.
 */
#ifndef LIBREPL_HASHWALK_H
#define LIBREPL_HASHWALK_H

#include "remote.h"

#define HASHWALK_BLOCKS 256U /* at most, of a piece */

struct hashwalk {
	struct remote *remote;
	const uint8_t *mem; /* the local side; NULL: fd is, read as it is needed */
	const char *file;   /* that is mapped as mem; NULL: none is known */
	int fd;
	bool shrinks;   /* the file may: what it has not is no difference, and else an error */
	int holes_fd;   /* of the file whose holes need not be read; -1: none is known */
	uint64_t size;  /* of both sides */
	uint32_t block; /* bytes hashed as one, a multiple of 4096 */
	bool exact;     /* compare all, whatever differed before */
	void *arg;
	/*
	 * The next piece from off on, at most max bytes, beginning at a multiple of 4096;
	 * false: none. Pieces come in rising order and may be asked for ahead.
	 */
	bool (*next)(void *arg, uint64_t off, uint64_t max, struct range *piece);
	/* A run that differs: in rising order, within a piece. */
	int (*differ)(void *arg, uint64_t off, uint64_t len, struct err *e);
	/* All of the piece has been told. May be NULL. */
	int (*passed)(void *arg, const struct range *piece, struct err *e);
	struct hashwalk_queue *queue; /* the walk's own */
	/*
	 * Of a walk that ended by another error: by this one the session has broken while the
	 * answers that were under way were taken, and no later request has it. Code 0: it has not.
	 */
	struct err cut;
};

/*
 * The local side is mem, which maps the file fd. Where that gives the same bytes it is read in its
 * place: that fills no holes, and costs less than memory that may go (localmem.h) or that nobody
 * has touched. fd stays the caller's; -1: it is not known.
 */
void hashwalk_local(struct hashwalk *w, const uint8_t *mem, int fd);

/* The local side is a file: to read it costs less than to touch pages that nobody has touched. */
void hashwalk_file(struct hashwalk *w, int fd);

int hashwalk_run(struct hashwalk *w, struct err *e);

/*
 * For callbacks that take their time: let the target hear from us when it is
 * due. With settle true also have nothing under way on return, so that the
 * callback may use the control channel.
 */
int hashwalk_keep_alive(struct hashwalk *w, bool settle, struct err *e);

#endif
