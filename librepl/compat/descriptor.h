/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * descriptor - of a local replica that pmempool fills, the pool's descriptor is kept back.
 *
 * PMDK makes the parts that were lost, writes their headers, makes the remote replicas that are
 * wanting, and then copies part by part: cut off anywhere in between the replica would pass for
 * whole, and others be made equal to it. So the descriptor, a page behind the header of the first
 * part, which all parts are mapped behind, is zero until all of them are there: such a pool is none
 * to PMDK, and pmempool sync makes it anew.
 *
 * One replica of a thread at a time, as PMDK fills one after the other.
 */
#ifndef LIBREPL_COMPAT_DESCRIPTOR_H
#define LIBREPL_COMPAT_DESCRIPTOR_H

#include <stdint.h>

#define DESCRIPTOR_SIZE 4096U

/*
 * That at this address is zero on media from now on. *page: what it is to be, at first what it was.
 * Once more it changes nothing; another one that was kept back is given. All return 0 or a status
 * of librepl's; after an error it stays zero.
 */
int descriptor_keep(uint8_t *at, uint8_t **page);

/* The replica is filled: it has its descriptor, on media. */
int descriptor_give(void);

/* PMDK has ended, and may have unmapped it: it is what it is. */
void descriptor_drop(void);

#endif
