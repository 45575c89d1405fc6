/* SPDX-License-Identifier: BSD-3-Clause */
/* unit - what every cmocka program includes, in the order cmocka wants. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#endif
