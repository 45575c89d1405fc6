/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * registry - what sessions there are under a pool directory.
 *
 * Each session holds a slot of the file POOLDIR/.repld/sessions locked for its life, which takes
 * no space: a full disk keeps nobody out who wants to read a pool or to remove one. It keeps one
 * small JSON file POOLDIR/.repld/SLOT.json, made by rename; one whose slot is free belongs to a
 * dead session and is removed. Space for it is reserved when the session begins, so that a disk
 * that fills up later does not keep it from being told of. Which process it is another lock tells.
 */
#ifndef REPLD_REGISTRY_H
#define REPLD_REGISTRY_H

#include <json-c/json.h>
#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

#define REGISTRY_ENTRY_SIZE 16384U

struct registry;

/*
 * Registers this process; REPL_E_LIMIT if sessions_max others are alive. Where the file system is
 * read-only and no session has been before, it goes on unregistered.
 */
int registry_join(int pool_dirfd, unsigned sessions_max, struct registry **out, struct err *e);
void registry_leave(struct registry *r);

/* o as an entry; REPL_E_INVAL if it does not fit. */
int registry_entry(struct json_object *o, char entry[REGISTRY_ENTRY_SIZE], struct err *e);

/* Replace this session's entry. It takes as long as the disk does; no memory is allocated. */
int registry_update(struct registry *r, const char entry[REGISTRY_ENTRY_SIZE], struct err *e);

/* Whether that process is such a session; by its locks, which take no space. */
bool registry_has_process(int pool_dirfd, pid_t pid);

/*
 * A new array of all live sessions' entries. *untold (or NULL): how many others have been there
 * for seconds without one: there is no space for it.
 */
int registry_list(int pool_dirfd, struct json_object **out, unsigned *untold, struct err *e);

#endif
