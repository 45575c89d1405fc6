/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolstore - what pool.c (look), poollist.c, poolopen.c (open), poolmake.c (create, remove),
 * poolgrow.c and poolprimary.c share.
 */
#ifndef REPLD_POOLSTORE_H
#define REPLD_POOLSTORE_H

#include "pool.h"
#include "poolparts.h"
#include "poolpath.h"

/* Names of files that a creation has not come to an end with. */
#define POOL_TEMP_PREFIX ".tmp-"
#define POOL_TEMP_MAX    32

/* So many removed files are kept until the lock on names is dropped. */
#define POOL_LATE_MAX 256

struct pool_store {
	int dirfd; /* its lock guards names: making, removing, cleaning up */
	char *dir;
	int late[POOL_LATE_MAX]; /* to be closed behind that lock */
	unsigned late_count;
	struct pool_listing *listing; /* for the next page of a list; NULL: none */
};

/* What this session makes or removes is in the next page of its list, or is not. */
void pool_list_forget(struct pool_store *s);

/* The files of a pool, open. */
struct pool_files {
	int fd; /* the pool's own file, or the first part of a set */
	int sidecar_fd;
	struct stat st;          /* of the pool's own file */
	struct poolparts *parts; /* of a set, open; NULL: the pool is one file */
	bool write;              /* open for writing */
};

struct pool {
	struct pool_store *store; /* borrowed */
	struct pool_files files;
	bool write;
	bool waited;      /* its writer waits for it with each drain */
	bool resumes;     /* its writer goes on with a journal that is not committed */
	bool sync_failed; /* of the pool's own file */
	bool flush_lost;  /* what is in memory of the pool may not be on media */
	bool written;     /* bytes of it may have changed since it was opened */
	bool in_doubt;    /* copies of the sidecar may tell two sizes */
	char *path;
	struct pooljournal *journal; /* of a pool open for writing; that it exists says nothing */
	struct pool_info info;
};

/* Open the files of a pool; flags are O_RDONLY or O_RDWR. */
int pool_files_open(struct pool_store *s, const char *name, int flags, struct pool_files *f,
		    struct err *e);
void pool_files_close(struct pool_files *f); /* and drop the lock */

/*
 * For writing, with the lock: those of directories once more, in which who had it before may have
 * made or removed some since they were listed.
 */
int pool_files_again(struct pool_store *s, const char *name, struct pool_files *f, struct err *e);

/* Let go of all that an open pool holds; nothing is recorded. NULL is allowed. */
void pool_free(struct pool *p);

/* REPL_E_NOT_FOUND if they were removed since they were opened. */
int pool_check_present(const struct pool_files *f, const char *name, struct err *e);

/*
 * How many bytes the pool of these files has: what meta says, but of a primary all that its own
 * program has made of its file, or has added to the files of a set.
 */
uint64_t pool_size_now(const struct pool_files *f, const struct sidecar *meta);

/* REPL_E_CORRUPT if the file's size is not what info says. */
int pool_check_size(const struct pool_files *f, const struct pool_info *info, struct err *e);

/*
 * Under the writer's lock, with both files open for writing, of a pool whose size is not right: if
 * a file is too short it is no replica.
 */
void pool_files_record_cut(const struct pool_files *f, const char *name, struct sidecar *meta);

/*
 * The same of one whose size is right: another device than what the sidecar speaks of is none, nor
 * are files of a set that have its bytes elsewhere. REPL_E_REFUSED, and nothing is
 * recorded, if it is another pool's; an error also if it can't be recorded.
 */
int pool_files_record_moved(struct pool_store *s, const struct pool_files *f, const char *name,
			    struct sidecar *meta, struct err *e);

/* What a reader is told of such a one; f's files and what was recorded stay as they are. */
void pool_files_look(const struct pool_files *f, struct sidecar *meta);

/* ---- poolbacking.c ---- */

/* The files of p's local replicas, which are open; nil: there are none, or nobody can say. */
struct gen_id poolparts_backing(const struct poolparts *p);

/*
 * How the first size bytes of the pool are spread over the files of p, which say them one behind
 * the other; and of what lies in its directories now, 0: nobody can say.
 */
uint64_t poolparts_layout(const struct poolparts *p, uint64_t size);
uint64_t poolparts_layout_now(const struct poolparts *p, uint64_t size);

/*
 * Which parts the set file names in all its sections, in the upper half, and where, in the lower
 * one; and whether those that it named when it was noted last are at other places now.
 */
uint64_t poolparts_order(const struct poolparts *p);
bool poolparts_is_reordered(const struct poolparts *p, uint64_t noted);

/* REPL_E_REFUSED if the device is that of a pool of another name. */
int pool_device_is_free(struct pool_store *s, const char *name, dev_t number, struct err *e);

/* Whether the device is another one than what meta speaks of, as far as both are known. */
bool pool_is_elsewhere(const struct pool_files *f, const struct sidecar *meta);

/* Whether the local replicas are the files that were equal to the pool when it was closed. */
bool pool_copies_are_known(const struct poolparts *p, const struct sidecar *meta);

/* Put what these files are into meta. */
void pool_backing_note(const struct pool_files *f, struct sidecar *meta);

void pool_info_init(struct pool_info *info, const char *name);
void pool_info_add_set(const struct pool_files *f, struct pool_info *info);

/* Map the pool of these files whole, see pmem.h. */
int pool_files_map(const struct pool_files *f, const char *path, uint64_t size, bool write,
		   struct pmem_map **out, struct err *e);

/* The sidecar of a pool whose files can't be opened, to be read; -1: nor can it. */
int pool_sidecar_alone(struct pool_store *s, const char *name);

/* Of a pool that was not found: as pool_primary_away(), else REPL_E_NOT_FOUND as it was told. */
int pool_away(struct pool_store *s, const char *name, struct err *e);

/* What pool_forget() does. */
void pool_files_forget(const struct pool_files *f);

/*
 * Under the writer's lock, with both files open for writing: bring in or drop the journal that a
 * dead writer has left. One that can't be believed leaves the pool inconsistent, which is no error.
 * keep: one that is not committed stays.
 */
int pool_journal_recover(struct pool_files *f, const char *path, struct sidecar *meta, bool keep,
			 struct err *e);

/*
 * Drop one that was left in such a sidecar, if any, under its lock, and is not committed. Its space
 * is given back until end_ns of the clock, a piece at least; *rest: there is more.
 */
int pool_journal_discard(int sidecar_fd, struct sidecar *meta, uint64_t end_ns, bool *rest,
			 struct err *e);

/* The same of a round log. */
int pool_log_recover(struct pool_files *f, const char *path, struct sidecar *meta, struct err *e);

/*
 * What meta will say when a log or record that a dead writer has left is brought in. Neither is
 * changed.
 */
void pool_rounds_look(const struct pool_files *f, struct sidecar *meta);

/* The same of a position record. */
int pool_position_recover(struct pool_files *f, const char *path, struct sidecar *meta,
			  struct err *e);

/*
 * REPL_E_REFUSED unless the sidecar is on the file system of the pool, and as durable: what is
 * probed of the pool holds for it.
 */
int pool_place_check(const struct pool *p, struct err *e);

/* Of the sidecar beside a pool at path; to be freed, NULL: no memory. */
char *pool_sidecar_path(const char *path);

/*
 * sidecar_read() of a pool's; what is damaged is told with the next step. REPL_E_IO if no copy is
 * right and one can't be read.
 */
int pool_meta_read(const struct pool_files *f, struct sidecar *meta, bool *repair, struct err *e);

/* What a reader is told beside a writer; the second with size and file system. */
int pool_read_settled(const struct pool_files *f, struct pool_info *info, struct err *e);
int pool_read_info(const struct pool_files *f, struct pool_info *info, struct err *e);

/* The writer went away without a word. */
void pool_writer_lost(struct sidecar *meta);

/* The same of what a reader is told; it is told, too, what the machine of a primary had. */
void pool_info_left(struct pool_info *info);

/* Whether what the file has from off to size reads as zeros. */
bool pool_rest_is_zero(int fd, uint64_t off, uint64_t size);

/*
 * Whether the file at a place is a pool set's: small, begins as one, and is not a
 * pool of that very content. If so *fd is open for reading, else -1.
 */
int pool_set_peek(const struct pool_place *place, const char *name, int *fd, struct err *e);

/*
 * What has become of the set file there, if the sidecar is that of a set and the file is not a set
 * file any more, or the sidecar may be one's and no file is there; NULL: nothing. The pool is as it
 * was, and a set file that is put back has it again.
 */
const char *pool_set_lost(const struct pool_place *place);
#define POOL_SET_LOST                                                                              \
	"pool '%s': %s: put it back as it was; the parts that it named are not touched"

/*
 * Whether there is a set whose parts nobody can tell, for its file can't be read or is not there:
 * any file may be one of them. set gets its name. made: of those only that have a sidecar.
 */
bool pool_set_unread(struct pool_store *s, bool made, char set[TARGET_POOL_MAX + 1]);

/* Visit the parts of all sets in the store until visit says to end. */
typedef bool pool_set_part_visit(void *ctx, const char *part, const char *set);
void pool_sets_visit(struct pool_store *s, pool_set_part_visit *visit, void *ctx);

/* Whether name is a part of one of the sets in the store; set gets that one's name. */
bool pool_part_of(struct pool_store *s, const char *name, char set[TARGET_POOL_MAX + 1]);

/*
 * Make a temporary file of a pool or a part and lock it, under the lock on names. Its name is of
 * that one's: who asks again for what takes long to make is refused with REPL_E_BUSY, *fd is -1
 * then, and does not have it made twice.
 */
void pool_temp_name(char temp[POOL_TEMP_MAX], const char *name, const char *suffix);
int pool_temp_open(const struct pool_place *p, const char *temp, int *fd, struct err *e);

/* Rename without replacing; by a second link where the file system can't. As renameat(2). */
int pool_rename_new(int dir, const char *from, const char *to);

/* The sidecar of a pool that is new: up to date, all zeros. uuid NULL: a random one. */
int pool_new_meta(uint64_t size, const struct gen_id *uuid, struct sidecar *meta, struct err *e);

/* Take the lock on names, with a bounded wait; REPL_E_TIMEOUT. */
int pool_store_lock(struct pool_store *s, const char *name, struct err *e);
void pool_store_unlock(struct pool_store *s);

/*
 * Under that lock, takes fd: a file that is removed meanwhile is closed when the lock is dropped.
 * The last to close it gives its space back, which takes tmpfs 0.1 s a GiB.
 */
void pool_store_close_late(struct pool_store *s, int fd);

/* REPL_E_NOT_FOUND where its name leads to other files by now, or to none. */
int pool_check_named(struct pool *p, struct err *e);

/* The error of who finds the writer lock taken: names the holder. */
int pool_busy(int sidecar_fd, const char *name, struct err *e);

/*
 * The lock that a program of PMDK's takes on the file of a pool, or on the first part of a set,
 * that it has open: held until fd is closed, so that none comes meanwhile. REPL_E_BUSY.
 */
int pool_use_lock(int fd, bool shared, const char *name, struct err *e);

/*
 * REPL_E_VERSION of a sidecar that a newer version made: what that speaks of is not known here, and
 * not to be removed. REPL_E_REFUSED of a primary, unless it is to be removed as such, since its
 * data may be nowhere else; and of one that is not what was seen. whole: it is none whose removal
 * was cut off, as its file tells.
 */
int pool_remove_check(int sidecar_fd, const char *name, bool whole, unsigned flags,
		      const struct pool_seen *seen, struct err *e);

/*
 * Record that there is no pool any more, before its files go: created_s of the sidecar is 0 then,
 * and *created_s gets what it was. A disk that takes nothing keeps no pool: it is removed without
 * that, too. Where none of them could be removed it is taken back.
 */
void pool_removal_mark(int sidecar_fd, const char *name, uint64_t *created_s);
void pool_removal_unmark(int sidecar_fd, uint64_t created_s);

/* Under the lock on names: REPL_E_REFUSED where what was found damaged can be read by now. */
int pool_remove_check_damage(struct pool_store *s, const char *name, unsigned flags, struct err *e);

/* poolparts_take_room() of the set file of that name; one that can't be read changes nothing. */
void pool_set_take_room(struct pool_store *s, const char *name, struct poolparts *p);

/* pool_remove() of a set. */
int pool_set_remove(struct pool_store *s, const char *name, unsigned flags,
		    const struct pool_seen *seen, struct err *e);

/*
 * Remove what killed creations have left, and journals that have been left for long, if the lock on
 * names is free.
 */
void pool_make_clean(struct pool_store *s);

#endif
