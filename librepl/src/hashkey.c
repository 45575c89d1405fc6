/* SPDX-License-Identifier: BSD-3-Clause */
#include "hashkey.h"

#include <string.h>

#include "control.h"
#include "hex.h"

int
hashkey_draw(struct hash_key *k, const struct remote *r, struct err *e)
{
	uint8_t key[HASH_KEY_SIZE];
	int rc;

	memset(k, 0, sizeof(*k));
	if (!remote_hash_key(r))
		return 0;
	rc = remote_random(r, key, sizeof(key), e);
	if (!rc)
		hash_key_set(k, key);
	return rc;
}

void
hashkey_add(const struct hash_key *k, struct json_object *params)
{
	char text[2 * HASH_KEY_SIZE + 1];

	if (!k->given)
		return;
	hex_encode(k->key, sizeof(k->key), text);
	control_add(params, "key", json_object_new_string(text));
}
