/* SPDX-License-Identifier: BSD-3-Clause */
/* mapped - whether a range that a program hands over is mapped, for who has not looked at it yet.
 */
#ifndef LIBREPL_MAPPED_H
#define LIBREPL_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether a byte of a range can be read. What can't be looked at for another reason counts as
 * readable, and so does what lies in the file: a hole that has no space, a disk that fails. Who has
 * to read it is told which.
 */
bool mapped_has(const uint8_t *mem, size_t size, size_t at);

#endif
