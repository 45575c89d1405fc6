/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * media_survival - what outlives a power cut in each configuration of the
 * taxonomy, for the media variant of pmem.h and for the cut itself.
 *
 *   dmp, DDIO on    what was flushed, and what was evicted by chance. So it is
 *                   for a software provider and for a page cache too.
 *   dmp, DDIO off   what the NIC stored, since that goes past the caches; of
 *                   what the CPU stored, what was flushed or evicted.
 *   mhp, wsp        all that was stored, by whomever.
 *
 * The first is kept as an image, the second as a record of the bytes that the
 * CPU has stored and not flushed, taken back at the cut. All bytes that come
 * into a mapping by other ways than pmem_map_copy() and pmem_map_store8() count
 * as the NIC's: over libfabric's tcp it is the provider that stores them.
 *
 * What this can't show over tcp: bytes in the buffers of a NIC or of an I/O
 * controller, which are lost in dmp and mhp and kept in wsp. Here a byte is in
 * memory or in a socket, and the sockets of a killed process are lost in all
 * domains: for wsp that is harsher than a machine, so nothing passes that
 * should not. The order in which such buffers drain is explored by the model of
 * docs/MEDIA-MODEL.md.
 */
#ifndef TESTS_MEDIA_SURVIVAL_H
#define TESTS_MEDIA_SURVIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

#define MEDIA_LINE 64U
#define MEDIA_PAGE 4096U

enum media_survival {
	MEDIA_FLUSHED,   /* PATH.media holds what survives */
	MEDIA_NOT_DIRTY, /* all but what PATH.dirty records */
	MEDIA_ALL,
};

struct media_settings {
	enum media_survival survival;
	enum profile_granularity granularity;
};

/* From the environment, see pmem_media.c; REPL_E_CONFIG names what it can't be. */
int media_settings_read(struct media_settings *s, struct err *e);

/*
 * The record of bytes that the CPU has stored and not flushed: for each its
 * value before and the value stored. It is a file, mapped shared, so that it is
 * there when its process was killed. Stores are recorded by one thread at a
 * time; cleaning may go on beside.
 */
struct media_dirty;

int media_dirty_open(const char *path, size_t size, struct media_dirty **out, struct err *e);
void media_dirty_free(struct media_dirty *d);

/* The mapping has size bytes now. What is recorded stays where it is, for all threads. */
int media_dirty_grow(struct media_dirty *d, size_t size, struct err *e);

/* Before the len bytes of src are stored at mem + off. */
void media_dirty_store(struct media_dirty *d, const uint8_t *mem, uint64_t off, const void *src,
		       size_t len);

/* The lines of the range have reached the media. */
void media_dirty_clean(struct media_dirty *d, uint64_t off, uint64_t len);

/*
 * Take back in mem what is recorded. A byte that differs from what the CPU stored
 * there was overwritten by the NIC since, and stays.
 */
void media_dirty_take_back(const struct media_dirty *d, uint8_t *mem);

/* An image is of one file, fd, by when that was born; where a file system tells neither, it is. */
void media_mark(int image, int fd);
bool media_is_of(int image, int fd);

/* fd is synced, which takes all of its file to the media: to its image, where it has one. */
void media_synced(int fd);

/*
 * The power cut: the file at path becomes what the media hold of it. Its first
 * keep bytes stay: those of a sidecar are written and synced, not stored. Its
 * process is dead. Nothing happens to a file that was not mapped for writing, nor by another
 * one's image.
 */
int media_cut(const char *path, uint64_t keep, struct err *e);

#endif
