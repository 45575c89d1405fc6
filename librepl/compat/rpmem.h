/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpmem - the interface of the old librpmem, version 1.3, as programs were built
 * against it: librpmem(7) of ours says what differs. Not installed.
 *
 * Functions return 0 or a handle; else -1 or NULL with errno and a text for
 * rpmem_errormsg(). Offsets count from pool_addr; a lane is one thread's at a time.
 */
#ifndef LIBREPL_RPMEM_H
#define LIBREPL_RPMEM_H

#include <stddef.h>
#include <stdint.h>

#define RPMEM_MAJOR_VERSION 1
#define RPMEM_MINOR_VERSION 3

#define RPMEM_PERSIST_RELAXED 1U /* no atomicity is asked for */
#define RPMEM_FLUSH_RELAXED   1U
#define RPMEM_REMOVE_FORCE    1
#define RPMEM_REMOVE_POOL_SET 2

#define RPMEM_MIN_POOL ((size_t)8192)

#define RPMEM_API __attribute__((visibility("default")))

typedef struct rpmem_pool RPMEMpool;

struct rpmem_pool_attr {
	char signature[8];
	uint32_t major;
	uint32_t compat_features;
	uint32_t incompat_features;
	uint32_t ro_compat_features;
	unsigned char poolset_uuid[16];
	unsigned char uuid[16];
	unsigned char next_uuid[16];
	unsigned char prev_uuid[16];
	unsigned char user_flags[16];
};

RPMEM_API RPMEMpool *rpmem_create(const char *target, const char *pool_set_name, void *pool_addr,
				  size_t pool_size, unsigned *nlanes,
				  const struct rpmem_pool_attr *create_attr);
RPMEM_API RPMEMpool *rpmem_open(const char *target, const char *pool_set_name, void *pool_addr,
				size_t pool_size, unsigned *nlanes,
				struct rpmem_pool_attr *open_attr);
RPMEM_API int rpmem_set_attr(RPMEMpool *rpp, const struct rpmem_pool_attr *attr);
RPMEM_API int rpmem_close(RPMEMpool *rpp);
RPMEM_API int rpmem_flush(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane,
			  unsigned flags);
RPMEM_API int rpmem_drain(RPMEMpool *rpp, unsigned lane, unsigned flags);
RPMEM_API int rpmem_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane,
			    unsigned flags);
RPMEM_API int rpmem_deep_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane);
RPMEM_API int rpmem_read(RPMEMpool *rpp, void *buff, size_t offset, size_t length, unsigned lane);
RPMEM_API int rpmem_remove(const char *target, const char *pool_set, int flags);
RPMEM_API const char *rpmem_check_version(unsigned major_required, unsigned minor_required);
RPMEM_API const char *rpmem_errormsg(void);

#endif
