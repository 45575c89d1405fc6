/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_impl - a profile in the taxonomy's terms: shared by plan.c, which
 * judges and chooses methods, and plan_steps.c, which spells them out.
 */
#ifndef COMMON_PLAN_IMPL_H
#define COMMON_PLAN_IMPL_H

#include "plan.h"

/* How RMA bytes get into the pages of the pool. */
enum plan_path {
	PLAN_PATH_CPU,   /* stores through the target's mapping: the kernel sees them */
	PLAN_PATH_VERBS, /* registered pages, behind the kernel's back; soft RNICs as well */
	PLAN_PATH_UNKNOWN,
};

/* How the initiator learns of durability, each enough for all that the former is enough for. */
enum plan_finish {
	PLAN_FINISH_COMP,  /* completion of the update itself */
	PLAN_FINISH_FLUSH, /* completion of a flush behind it */
	PLAN_FINISH_ACK,   /* answer of the target's CPU, which has flushed */
};

struct plan_view {
	struct taxonomy_key key; /* op and update are to be filled in */
	enum plan_path path;
	enum profile_class class;
	bool iwarp;    /* WSP was made MHP because of the provider */
	bool software; /* DDIO was made on because of the provider */
};

/* The configuration to look up, after the rules of class and provider. */
void plan_view_of(const struct profile *p, struct plan_view *v);

enum plan_finish plan_row_finish(const struct taxonomy_row *row);

/* The method that begins with op and ends like that. */
enum plan_method plan_method_of(enum taxonomy_op op, enum plan_finish finish);

#endif
