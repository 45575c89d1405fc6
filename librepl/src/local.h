/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local - the initiator's own sidecar, FILE.repl beside the pool file: which
 * generation the local data is, so that a replica can be told from a newer or
 * a stranger one. Locked while it is open: one user of a pool at a time.
 */
#ifndef LIBREPL_LOCAL_H
#define LIBREPL_LOCAL_H

#include <stdbool.h>
#include <stddef.h>

#include "calltime.h"
#include "err.h"
#include "pagecache.h"
#include "procself.h"
#include "sidecar.h"

#define LOCAL_MAPS PROCSELF "/maps"

struct local {
	char *path;         /* of the sidecar; NULL: no pool file, nothing is kept */
	int fd;             /* -1 until there is one */
	int again;          /* local_again(); -1: none */
	bool present;       /* meta was read from the file, and tells something */
	uint64_t recorded;  /* the size there: where the file is longer meta has its; 0: none */
	const uint8_t *mem; /* the pool file as it is mapped; NULL: nobody syncs it */
	int pool;           /* the pool file by an open file description of its own; -1: none */
	dev_t pool_dev;     /* ... which file that is */
	ino_t pool_ino;     /* ... 0: none */
	bool abandoned;     /* in the child of a fork */
	bool lost;          /* a sync of the pool file has lost something: local_agree() is due */
	struct sidecar meta;
	struct diskclock disk; /* while a record beside the pool is waited for */
};

void local_init(struct local *l);
void local_fini(struct local *l);

/*
 * In the child of a fork: its descriptors are given up; the lock stays the parent's. A call that it
 * returns to stores nothing, neither there nor in a file that has the number by then.
 */
void local_abandon(struct local *l);

/*
 * The sidecar once more, by an open file description of its own: the kernel tells each of those an
 * error of the device once, whoever syncs beside. Where it can't be had it is fd.
 */
int local_again(struct local *l);

/*
 * Open FILE.repl if it is there; size is the pool's: a larger one in the sidecar is REPL_E_CORRUPT,
 * with a smaller one the file has grown. REPL_E_BUSY if somebody else has it. An error, too, where
 * it is not there and could not be made. pool_file NULL: nothing is kept.
 */
int local_open(struct local *l, const char *pool_file, uint64_t size, struct err *e);

/* The pool file that is mapped at mem is looked at from here on, till local_fini(). */
void local_look(struct local *l, const char *file, const void *mem);

/*
 * REPL_E_REFUSED for what was left half way, as a replica: its chain names generations that it has
 * not all of, so that nobody may go on with it or copy it elsewhere, unless somebody has promoted
 * it.
 */
int local_check_whole(const struct local *l, struct err *e);

/*
 * What the file that is mapped at mem holds of its first size bytes is on media, whoever has
 * written it: before a record says which generation that is, or that replicas have it.
 */
int local_settle(const void *mem, uint64_t size, struct err *e);

/*
 * Behind local_settle(), of a file whose record says that its last writer did not end in order: on
 * media is what memory has of the file, of which that one's sync may have lost something and
 * nobody tells again. With PAGECACHE_MEMORY nobody stores to it meanwhile; with PAGECACHE_EITHER
 * somebody may, and *lost tells but how much that was, or may be where the device can't be read. fd
 * is for reading it; -1: it is left as it is.
 */
int local_agree(int fd, const void *mem, uint64_t size, enum pagecache_right right, uint64_t *lost,
		struct err *e);

/*
 * Whether that is due: so says the record, and where there is none nobody tells that the pool's
 * last sync has lost nothing.
 */
bool local_in_doubt(const struct local *l);

/*
 * A sync of the pool file has failed, before anybody has it open: the next one tells nothing of
 * that, so the record does, if there is one.
 */
void local_doubt(struct local *l);

/*
 * local_settle() once the pool is open, where the program may sync beside us: by l->pool, so that
 * an error of the device is told to both, since the kernel tells each open file description once.
 * Without that one by l->mem; without either there is nothing to sync.
 */
int local_settle_beside(const struct local *l, uint64_t size, struct err *e);

/*
 * The length of the file is: before a record tells size bytes. What is stored there is the
 * program's to make durable.
 */
int local_settle_size(const void *mem, uint64_t size, struct err *e);

/* Write meta; makes the file (0600, by temporary name and rename) if absent. */
int local_store(struct local *l, struct err *e);

/*
 * The file that is mapped shared at addr from its start and for at least size bytes, in however
 * many pieces, from LOCAL_MAPS: *path is a new string, or NULL if there is none. An error, with
 * NULL, if nobody can tell, as where its name does not lead to it.
 */
int local_find_file(const void *addr, size_t size, char **path, struct err *e);

/* What a range is: of which file, and where in it; or also memory that ends with the program. */
struct local_range {
	char *path; /* as of local_find_file(), wherever in it the range begins */
	uint64_t off;
	bool is_private; /* a part of it at least, be it of a file: nobody else sees what is stored
			  */
};

int local_find_range(const void *addr, size_t size, struct local_range *range, struct err *e);

/*
 * REPL_E_INVAL where file, beside which the range's record is, has something in it and is not what
 * is mapped at addr: its record speaks of other data then. NULL: the file that has got the name of
 * the mapped one, and a record. Behind local_open(), since who replaces a file has its
 * record locked.
 */
int local_check_mapped(const void *addr, size_t size, const char *file, struct err *e);

/*
 * Whether one of the files that are mapped from addr on, behind the first, is a part of a pool that
 * PMDK has made just now: nobody may open it yet, and its header, which is mapped elsewhere, or
 * what it begins with in a set of one header, is still to be written. False where that can't be
 * told.
 */
bool local_has_new(const void *addr, size_t size);

/* A new random identifier. */
int local_new_id(struct gen_id *id, struct err *e);

#endif
