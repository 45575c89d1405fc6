/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target of resync_world.h, as a resync reaches it: requests, the writes of a push, the
 * journal. Each step may be the one at which it is lost. It takes the place of remote, push and
 * stage.
 */
#ifndef UNIT_RESYNC_TARGET_H
#define UNIT_RESYNC_TARGET_H

unsigned
remote_heartbeat_ms(const struct remote *r)
{
	(void)r;
	return 5;
}

unsigned
remote_op_timeout_ms(const struct remote *r)
{
	(void)r;
	return 4000;
}

uint64_t
remote_trip_ns(const struct remote *r)
{
	(void)r;
	return w.far.trip_ns;
}

const struct replica_info *
remote_info(const struct remote *r)
{
	return &r->info;
}

/* A target of before, one that takes few, one that takes many. */
uint64_t
remote_hash_ranges(const struct remote *r)
{
	static const uint64_t most[] = {0, 1, 3, 256};

	(void)r;
	return most[w.seed % 4];
}

/* Earlier ones take none. */
bool
remote_hash_key(const struct remote *r)
{
	(void)r;
	return w.seed / 4 % 2;
}

int
remote_random(const struct remote *r, void *to, size_t len, struct err *e)
{
	static uint8_t drawn;

	(void)r;
	(void)e;
	memset(to, ++drawn, len);
	return 0;
}

static void
key_take(struct remote *r, struct json_object *params)
{
	uint8_t key[HASH_KEY_SIZE];
	const char *text = "";

	memset(&r->key, 0, sizeof(r->key));
	if (control_has(params, "key") != remote_hash_key(r))
		wrong("a key that is not taken, or none");
	if (!remote_hash_key(r))
		return;
	(void)control_get_text(params, "key", 2 * sizeof(key), &text, NULL);
	if (!hex_decode(text, strlen(text), key, sizeof(key)))
		wrong("a key that is none");
	hash_key_set(&r->key, key);
}

static void
hash_text(const struct remote *t, uint64_t off, uint64_t block, uint64_t count, char *text)
{
	uint8_t *bytes = malloc(block), hash[HASH128_SIZE];
	uint64_t size = t->info.meta.pool_size;

	for (uint64_t i = 0; i < count; i++, off += block) {
		uint64_t len = size - off < block ? size - off : block;

		for (uint64_t at = 0; at < len; at += BLOCK)
			memset(bytes + at, t->value[(off + at) / BLOCK], BLOCK);
		hash128_keyed(&t->key, bytes, len, hash);
		w.hashed++;
		hex_encode(hash, sizeof(hash), text + i * HASH128_SIZE * 2);
	}
	free(bytes);
}

static char *
hash_some(const struct remote *r, uint64_t off, uint64_t block, uint64_t count, char *text)
{
	const size_t digits = HASH128_SIZE * 2;

	if (count == 0 || off + (count - 1) * block >= r->info.meta.pool_size)
		wrong("hashes from outside of the pool");
	else
		hash_text(r, off, block, count, text);
	return text + count * digits;
}

static void
hashes_answer(struct remote *r, struct json_object *params, char *text)
{
	uint64_t off = 0, block = 1, count = 0;
	struct json_object *rows = NULL;

	key_take(r, params);
	(void)control_get_u64(params, "block", 0, INT64_MAX, &block, NULL);
	if (!control_has(params, "ranges")) {
		(void)control_get_u64(params, "off", 0, INT64_MAX, &off, NULL);
		(void)control_get_u64(params, "count", 0, INT64_MAX, &count, NULL);
		(void)hash_some(r, off, block, count, text);
		return;
	}
	(void)control_get_array(params, "ranges", CONTROL_LINE_MAX, &rows, NULL);
	if (json_object_array_length(rows) > remote_hash_ranges(r))
		wrong("more ranges than the target takes");
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		off = (uint64_t)json_object_get_int64(json_object_array_get_idx(row, 0));
		count = (uint64_t)json_object_get_int64(json_object_array_get_idx(row, 1));
		text = hash_some(r, off, block, count, text);
	}
}

int
remote_post(struct remote *r, const char *method, struct json_object *params, int64_t *id,
	    struct err *e)
{
	unsigned slot = (r->answer_head + r->answer_count) % ANSWERS;
	bool alive = step(r);

	(void)method;
	r->heard_ns = model_now_ns;
	if (alive)
		hashes_answer(r, params, r->answer[slot].text);
	json_object_put(params);
	if (!alive)
		return lost(e);
	*id = r->answer[slot].id = ++r->id;
	r->answer_count++;
	return 0;
}

int
remote_take(struct remote *r, const char *method, int64_t id, struct json_object **result,
	    struct err *e)
{
	(void)method;
	if (!step(r))
		return lost(e);
	if (r->answer_count == 0 || r->answer[r->answer_head].id != id)
		wrong("answers are taken out of order");
	if (result) {
		*result = json_object_new_object();
		json_object_object_add(*result, "hashes",
				       json_object_new_string(r->answer[r->answer_head].text));
	}
	r->answer_head = (r->answer_head + 1) % ANSWERS;
	r->answer_count--;
	return 0;
}

int
remote_call(struct remote *r, const char *method, struct json_object *params,
	    struct json_object **result, struct err *e)
{
	if (!step(r)) {
		json_object_put(params);
		return lost(e);
	}
	r->heard_ns = model_now_ns;
	if (r->answer_count)
		wrong("a request among answers that were not taken");
	if (strcmp(method, "pool.extents") == 0)
		*result = extents_answer(r, params);
	json_object_put(params);
	return 0;
}

bool
remote_is_broken(struct remote *r)
{
	return r->lost_told;
}

int
remote_beat(struct remote *r, struct err *e)
{
	return remote_call(r, "ping", NULL, NULL, e);
}

int
remote_pool_mark(struct remote *r, enum sidecar_state state, const struct generation *g,
		 struct err *e)
{
	bool through = comes_through(r);

	if (r->answer_count || r->flights)
		wrong("a mark among what is not settled");
	if (state == SIDECAR_INCONSISTENT && r->full && lacks_space(r))
		wrong("a sparse replica is given up where there is no space");
	if (through) {
		r->left = false;
		if (state == SIDECAR_UP_TO_DATE)
			w.base = w.at_hold;
		r->info.meta.state = state;
		if (g) {
			r->info.meta.generation = *g;
			r->info.meta.position = 0;
		}
	}
	return r->lost ? lost(e) : 0;
}

int
remote_pool_mark_part(struct remote *r, const struct generation *g, uint64_t position,
		      struct err *e)
{
	if (comes_through(r)) {
		r->left = false;
		w.base = w.at_hold;
		r->info.meta.generation = *g;
		lineage_part(&r->info.meta, position);
	}
	return r->lost ? lost(e) : 0;
}

int
remote_pool_grow(struct remote *r, uint64_t size, bool prepare, uint64_t deadline_ns, struct err *e)
{
	(void)prepare;
	(void)deadline_ns;
	if (r->journal && !r->lost)
		wrong("the pool grows under a journal");
	if (comes_through(r))
		r->info.meta.pool_size = size;
	return r->lost ? lost(e) : 0;
}

static void
copy_now(struct remote *t, const struct range *range)
{
	for (uint64_t at = range->off; at < range->off + range->len; at += BLOCK) {
		t->value[at / BLOCK] = w.mem[at];
		t->hole[at / BLOCK] = false;
	}
}

/* Some of the time that a lane needs for what is under way. */
static int
wait_breathing(struct remote *t, const struct breath *breath, struct err *e)
{
	int rc = 0;

	for (uint64_t n = rnd(w.slow ? 12 : 2); !rc && n > 0; n--) {
		bytes_move(t, BREATH_NS);
		if (t->flights > 0 && rnd(2))
			copy_now(t, &t->flight[rnd(t->flights)]);
		rc = step(t) ? breath_take(breath, e) : lost(e);
	}
	return rc;
}

void
push_begin(struct push *p, struct remote *remote, unsigned lane, const struct fill_source *from,
	   struct breath breath)
{
	(void)remote;
	(void)lane;
	(void)from;
	p->breath = breath;
}

int
push_range(struct push *p, uint64_t off, uint64_t len, struct err *e)
{
	struct remote *t = &w.target;
	struct range range = {.off = off, .len = len};

	int rc = rnd(4) ? 0 : wait_breathing(t, &p->breath, e);

	if (rc)
		return rc;
	bytes_move(t, len * w.slow);
	if (!step(t))
		return lost(e);
	if (t->info.meta.state != SIDECAR_INCONSISTENT)
		wrong("a direct write to a replica that is not marked inconsistent");
	if (t->left)
		wrong("a direct write beside a journal that nobody takes up");
	if (off + len > t->info.meta.pool_size || t->flights == ENTRIES)
		wrong("a write outside of the pool");
	else if (!finds_space(t, &range))
		t->lost = true;
	else if (rnd(2))
		copy_now(t, &range);
	else
		t->flight[t->flights++] = range;
	return t->lost ? lost(e) : 0;
}

int
push_post(struct push *p, struct err *e)
{
	(void)p;
	return step(&w.target) ? 0 : lost(e);
}

int
push_settle(struct push *p, struct err *e)
{
	struct remote *t = &w.target;
	int rc = wait_breathing(t, &p->breath, e);

	if (rc)
		return rc;
	if (!step(t))
		return lost(e);
	for (unsigned i = 0; i < t->flights; i++)
		copy_now(t, &t->flight[i]);
	t->flights = 0;
	return 0;
}

int
remote_journal_begin(struct remote *r, uint64_t bytes, struct err *e)
{
	if (!comes_through(r))
		return lost(e);
	if (r->answer_count)
		wrong("journal.begin among answers that were not taken");
	if (r->info.meta.state == SIDECAR_INCONSISTENT)
		wrong("a journal for an inconsistent replica");
	if (bytes > w.journal_max && (!r->info.meta.sparse || !w.disk || bytes <= w.disk))
		return err_set(e, REPL_E_REFUSED, "too large");
	if (bytes > w.journal_max || w.stay_full ||
	    (w.refuse_journal && rnd(r->journal ? 2 : 3) == 0)) {
		r->full = true;
		lacked_note(r);
		return err_set(e, REPL_E_NOSPC, "full");
	}
	if (r->committed)
		wrong("a journal begun over one that is committed");
	if (r->telling)
		wrong("a journal begun that is not looked through");
	if (w.disk && bytes > w.disk)
		return err_set(e, REPL_E_NOSPC, "too little space");
	r->left = false;
	if (!r->journal) {
		r->entries = r->apply_at = 0;
		r->used = r->applied = 0;
	}
	r->journal = true;
	r->room = bytes;
	return r->lost ? lost(e) : 0;
}

int
remote_journal_resume(struct remote *r, uint64_t bytes, uint64_t *ahead, struct err *e)
{
	*ahead = r->left && rnd(8) ? 1 + rnd(20) : 0;
	if (!*ahead)
		return remote_journal_begin(r, bytes, e);
	if (!comes_through(r))
		return lost(e);
	if (r->info.meta.state == SIDECAR_INCONSISTENT)
		wrong("a journal for an inconsistent replica");
	r->left = false;
	r->ahead = *ahead;
	r->journal = r->telling = true;
	r->used = r->told = 0;
	r->apply_at = 0;
	r->applied = 0;
	return r->lost ? lost(e) : 0;
}

int
remote_journal_kept_ask(struct remote *r, const struct hash_key *key, int64_t *id, struct err *e)
{
	r->heard_ns = model_now_ns;
	r->key = *key;
	if (!step(r))
		return lost(e);
	if (!r->telling)
		wrong("a journal is told that is not resumed");
	if (r->answer_count == r->ahead)
		wrong("more is asked for than the target takes");
	*id = r->answer[(r->answer_head + r->answer_count++) % ANSWERS].id = ++r->id;
	return 0;
}

/*
 * Some, none only at the end and behind it. Half of the messages that there were may be torn.
 */
int
remote_journal_kept(struct remote *r, int64_t id, uint64_t size, struct stage_kept *kept,
		    unsigned *count, uint64_t *bytes, bool *more, struct err *e)
{
	static uint8_t data[RESYNC_CHUNK];
	int rc;

	*count = 0;
	rc = remote_take(r, "journal.kept", id, NULL, e);
	if (rc)
		return rc;
	if (rnd(50) == 0)
		return err_set(e, REPL_E_REFUSED, "it can't be read");
	/* It may take its time: longer than from one sign of life to the next. */
	model_now_ns += rnd(4) ? 0 : BREATH_NS;
	for (uint64_t n = 1 + rnd(3); n > 0 && r->told < r->entries; n--) {
		const struct entry *has = &r->entry[r->told++];
		struct stage_kept *k = &kept[(*count)++];

		if (has->off + has->len > size)
			wrong("a range outside of the pool");
		for (uint64_t at = 0; at < has->len; at += BLOCK)
			memset(data + at, has->value[at / BLOCK], BLOCK);
		k->off = has->off;
		k->len = has->len;
		hash128_keyed(&r->key, data, has->len, k->hash);
		r->used += has->len;
	}
	*bytes = r->used;
	*more = r->told < r->entries;
	r->telling = *more;
	return 0;
}

uint64_t
remote_journal_max(const struct remote *r)
{
	(void)r;
	return w.journal_max;
}

uint64_t
remote_journal_room(const struct remote *r, uint64_t bytes)
{
	(void)r;
	return bytes;
}

uint64_t
remote_journal_takes(const struct remote *r)
{
	return remote_journal_max(r);
}

static struct stage {
	struct breath breath;
} the_stage;

int
stage_begin(struct remote *r, const struct fill_source *from, struct breath breath,
	    struct stage **out, struct err *e)
{
	(void)from;
	the_stage.breath = breath;
	*out = NULL;
	if (!step(r))
		return lost(e);
	*out = &the_stage;
	return 0;
}

int
stage_range(struct stage *s, uint64_t off, uint64_t len, struct err *e)
{
	struct remote *t = &w.target;
	struct entry *n = &t->entry[t->entries];
	int rc = rnd(4) ? 0 : wait_breathing(t, &s->breath, e);

	if (rc)
		return rc;
	bytes_move(t, len * w.slow);
	if (!step(t))
		return lost(e);
	if (!t->journal || t->telling || t->committed || t->used + len > t->room ||
	    t->entries == ENTRIES - 1 || off + len > t->info.meta.pool_size) {
		wrong("staged without room for it");
		return lost(e);
	}
	/* A quota, or another program, has taken the space that it was promised. */
	if (w.stage_full || (w.refuse_journal && rnd(100) == 0)) {
		t->full = true;
		lacked_note(t);
		return err_set(e, REPL_E_NOSPC, "full");
	}
	*n = (struct entry){.off = off, .len = len};
	for (uint64_t at = 0; at < len; at += BLOCK)
		n->value[at / BLOCK] = w.mem[off + at];
	t->entries++;
	t->used += len;
	w.staged = t->used > w.staged ? t->used : w.staged;
	return 0;
}

int
stage_settle(struct stage *s, struct err *e)
{
	int rc = wait_breathing(&w.target, &s->breath, e);

	if (rc)
		return rc;
	return step(&w.target) ? 0 : lost(e);
}

void
stage_end(struct stage *s)
{
	(void)s;
}

static void
entry_apply(struct remote *t, const struct entry *n)
{
	for (uint64_t at = 0; at < n->len; at += BLOCK)
		t->value[(n->off + at) / BLOCK] = n->value[at / BLOCK],
					 t->hole[(n->off + at) / BLOCK] = false;
}

static void
journal_end(struct remote *t)
{
	t->journal = t->committed = t->left = false;
	t->info.meta.state = t->commit_state;
	if (t->commit_chain) {
		t->info.meta.generation = t->commit_generation;
		t->info.meta.position = 0;
	}
	if (t->commit_position)
		lineage_part(&t->info.meta, t->commit_position);
	/* From now on it is this. */
	w.base = w.at_hold;
}

int
remote_journal_commit(struct remote *r, enum sidecar_state state, const struct generation *g,
		      uint64_t position, struct err *e)
{
	bool through;

	if (!w.held && w.busy)
		wrong("a commit while the program writes");
	if (!g)
		wrong("a commit under a generation that the replica has left");
	if (r->telling)
		wrong("a commit of what is not looked through");
	through = comes_through(r);
	if (through && r->journal) {
		r->committed = true;
		r->commit_state = state;
		r->commit_position = position;
		r->commit_chain = g != NULL;
		if (g)
			r->commit_generation = *g;
	}
	return r->lost ? lost(e) : 0;
}

/* Of a long way only what it costs is looked at. */
static int
far_apply(struct remote *r, uint64_t max, uint64_t *done)
{
	uint64_t left = w.far.total - r->applied, some = left < max ? left : max;
	uint64_t work_ns = some * w.slow / 10;

	if (w.far.most && some > w.far.most)
		some = w.far.most;
	r->applied += some;
	*done = r->applied;
	w.far.total += w.far.more;
	if (++w.far.calls == w.far.cancel_at)
		w.cancel = true;
	w.far.longest_ns = work_ns > w.far.longest_ns ? work_ns : w.far.longest_ns;
	model_now_ns += w.far.trip_ns + work_ns;
	return 0;
}

int
remote_journal_apply(struct remote *r, uint64_t max, uint64_t *done, uint64_t *total, struct err *e)
{
	uint64_t some = 0;

	*total = w.far.total ? w.far.total : r->used;
	*done = r->applied;
	if (w.far.total)
		return far_apply(r, max, done);
	if (!r->committed)
		wrong("a journal applied that is not committed");
	if (!comes_through(r))
		return lost(e);
	while (r->apply_at < r->entries && (some == 0 || some < max / 8)) {
		entry_apply(r, &r->entry[r->apply_at]);
		some += r->entry[r->apply_at++].len;
	}
	model_now_ns += some * w.slow / 2;
	r->applied += some;
	*done = r->applied;
	if (r->apply_at == r->entries)
		journal_end(r);
	return r->lost ? lost(e) : 0;
}

int
remote_journal_drop(struct remote *r, struct err *e)
{
	if (r->answer_count && !r->lost)
		wrong("a journal dropped among answers that were not taken");
	if (comes_through(r) && !r->committed)
		r->journal = r->telling = r->left = false;
	return r->lost ? lost(e) : 0;
}

/* The session is over: what the target does at its end or when the pool is opened next. */
static void
target_recover(struct remote *t)
{
	for (unsigned i = 0; i < t->flights; i++) {
		if (rnd(2))
			copy_now(t, &t->flight[i]);
	}
	t->flights = 0;
	t->answer_count = 0;
	t->heard_ns = model_now_ns;
	if (t->committed) {
		for (unsigned i = 0; i < t->entries; i++)
			entry_apply(t, &t->entry[i]);
		journal_end(t);
	}
	/* The last ones may be torn, and what was there before in their place. */
	if (!t->committed && t->journal)
		t->left = rnd(4);
	if (t->left && rnd(2))
		t->entries -= (unsigned)rnd(t->entries + 1);
	t->info.journal_left = t->left;
	t->telling = false;
	t->journal = t->lost = t->lost_told = false;
}

#endif
