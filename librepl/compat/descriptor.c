/* SPDX-License-Identifier: BSD-3-Clause */
#include "descriptor.h"

#include <stddef.h>
#include <string.h>

#include "le.h"
#include "repl_set.h"

static _Thread_local struct {
	uint8_t *at; /* NULL: none is kept back */
	uint8_t page[DESCRIPTOR_SIZE];
} kept;

int
descriptor_keep(uint8_t *at, uint8_t **page)
{
	int rc;

	*page = kept.page;
	if (kept.at == at)
		return 0;
	rc = descriptor_give();
	if (rc)
		return rc;
	memcpy(kept.page, at, DESCRIPTOR_SIZE);
	memset(at, 0, DESCRIPTOR_SIZE);
	rc = repl_set_settle(at, DESCRIPTOR_SIZE);
	kept.at = rc ? NULL : at;
	return rc;
}

int
descriptor_give(void)
{
	uint8_t *at = kept.at;

	kept.at = NULL;
	/* From another local replica PMDK copies it itself. */
	if (!at || !all_zero(at, DESCRIPTOR_SIZE))
		return 0;
	memcpy(at, kept.page, DESCRIPTOR_SIZE);
	return repl_set_settle(at, DESCRIPTOR_SIZE);
}

void
descriptor_drop(void)
{
	kept.at = NULL;
}
