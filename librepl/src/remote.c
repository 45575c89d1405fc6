/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"

#define LOCK_PAUSE_NS 200000L
#define PING_LOOK_MS  100U

/* ---- requests ---- */

static int
remote_send(struct remote *r, const char *method, struct json_object *params, uint64_t deadline_ns,
	    int64_t *id, struct err *e)
{
	struct json_object *request = NULL;
	char *line = NULL;
	size_t len = 0;
	int rc;

	if (params)
		request = control_request_new(r->next_id, method, params);
	if (request)
		line = control_line(request, &len);
	json_object_put(request);
	if (!line)
		return err_set(e, REPL_E_NOMEM, "request %s: out of memory or too long", method);
	rc = channel_write(r->channel, line, len, deadline_ns, e);
	free(line);
	if (rc) {
		r->broken = true;
		return rc;
	}
	*id = r->next_id++;
	return 0;
}

/* The next line of the stream as an object. */
static int
remote_read_object(struct remote *r, uint64_t deadline_ns, struct json_object **out, struct err *e)
{
	char *line, *space;
	size_t len, room, got;
	int rc;

	while (!(line = line_buf_next(&r->lines, &len))) {
		rc = line_buf_space(&r->lines, &space, &room, e);
		if (!rc)
			rc = channel_read(r->channel, space, room, deadline_ns, &got, e);
		if (rc)
			return rc;
		line_buf_filled(&r->lines, got);
	}
	return control_parse(line, len, out, e);
}

/* Answer id, which is the next one. A deadline that passes leaves the stream as it was. */
static int
remote_answer(struct remote *r, int64_t id, uint64_t deadline_ns, struct json_object **result,
	      struct err *e)
{
	struct json_object *answer = NULL, *value = NULL;
	int rc = remote_read_object(r, deadline_ns, &answer, e);

	if (rc)
		return rc;
	r->await_id++;
	rc = control_answer_check(answer, id, &value, r->next_step, sizeof(r->next_step), e);
	if (rc == REPL_E_PROTOCOL)
		r->broken = true;
	json_object_put(answer);
	if (result)
		*result = value;
	else
		json_object_put(value);
	return rc;
}

static int
remote_receive(struct remote *r, int64_t id, uint64_t deadline_ns, struct json_object **result,
	       struct err *e)
{
	int rc = 0;

	r->next_step[0] = '\0';
	if (r->ping_id && r->ping_id == r->await_id && id == r->ping_id + 1) {
		rc = remote_answer(r, r->ping_id, deadline_ns, NULL, e);
		/* Else it is still to come: who only looked goes on waiting for it. */
		if (r->await_id > r->ping_id)
			r->ping_id = 0;
	}
	if (!rc && id != r->await_id)
		return err_set(e, REPL_E_INVAL, "answers are taken in the order of the requests");
	if (!rc)
		rc = remote_answer(r, id, deadline_ns, result, e);
	/* What comes later would be taken for the answer to another request. */
	if (rc && r->await_id <= id)
		r->broken = true;
	return rc;
}

/* What is there while nothing is asked would be taken for the answers to what follows. */
static int
remote_usable(struct remote *r, struct err *e)
{
	if (r->broken)
		return err_set(e, REPL_E_LOST, "control channel to %s is broken", r->target.host);
	if (r->await_id < r->next_id || r->lines.start == r->lines.len)
		return 0;
	r->broken = true;
	return err_set(e, REPL_E_PROTOCOL, "%s has told what it was not asked", r->target.host);
}

/*
 * Another thread may be waiting for an answer; that one's deadline is not ours.
 * Tried again and again, since gcc's thread sanitizer does not know
 * pthread_mutex_clocklock(); a request takes longer than a pause.
 */
static int
remote_lock_by(struct remote *r, uint64_t deadline_ns, const _Atomic uint64_t *until, struct err *e)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
	uint64_t now, end;

	do {
		if (pthread_mutex_trylock(&r->lock) == 0)
			return 0;
		(void)nanosleep(&pause, NULL);
		now = clock_now_ns();
		end = until ? atomic_load(until) : 0;
	} while (now < deadline_ns && (!end || now < end));
	return err_set(e, REPL_E_TIMEOUT, "%s has not answered an earlier request", r->target.host);
}

static void
remote_trip_note(struct remote *r, uint64_t ns)
{
	uint64_t least = atomic_load(&r->trip_ns);

	if (least == 0 || ns < least)
		atomic_store(&r->trip_ns, ns);
}

/* A request that had no answer has its name in the text. */
static int
remote_silent(const struct remote *r, const char *method, int rc, struct err *e)
{
	if (rc != REPL_E_TIMEOUT || !r->broken)
		return rc;
	return err_set(e, rc, "%s: timed out waiting for the answer to %s", r->target.host, method);
}

/* Send a request. Until its answer is taken it is the only one, and the lock is held. */
static int
remote_begin(struct remote *r, const char *method, struct json_object *params, uint64_t deadline_ns,
	     struct remote_request *q, struct err *e)
{
	/* Who asks for something behind that moment knows of it. */
	const _Atomic uint64_t *until = r->until && atomic_load(r->until) == 0 ? r->until : NULL;
	int rc = remote_lock_by(r, deadline_ns, until, e);

	if (rc) {
		json_object_put(params);
		return rc;
	}
	*q = (struct remote_request){.method = method, .begin_ns = clock_now_ns()};
	channel_bound(r->channel, until);
	rc = remote_usable(r, e);
	if (rc)
		json_object_put(params);
	else
		rc = remote_send(r, method, params, deadline_ns, &q->id, e);
	if (!rc)
		return 0;
	channel_bound(r->channel, NULL);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

/*
 * *there: it is at its end. Else there was no answer by look_ns, which is no reason to give it up
 * before the deadline, nor by remote_bound(): nothing has changed.
 */
static int
remote_end_or_look(struct remote *r, const struct remote_request *q, uint64_t look_ns,
		   uint64_t deadline_ns, bool *there, struct json_object **result, struct err *e)
{
	int rc = remote_receive(r, q->id, look_ns < deadline_ns ? look_ns : deadline_ns, result, e);
	uint64_t now_ns = clock_now_ns();

	*there = rc != REPL_E_TIMEOUT || r->await_id > q->id || now_ns >= deadline_ns ||
		 now_ns < look_ns;
	if (!*there) {
		r->broken = false;
		return rc;
	}
	if (!rc)
		remote_trip_note(r, clock_now_ns() - q->begin_ns);
	rc = remote_silent(r, q->method, rc, e);
	channel_bound(r->channel, NULL);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static int
remote_end(struct remote *r, const struct remote_request *q, uint64_t deadline_ns,
	   struct json_object **result, struct err *e)
{
	bool there;

	return remote_end_or_look(r, q, deadline_ns, deadline_ns, &there, result, e);
}

int
remote_call_by(struct remote *r, const char *method, struct json_object *params,
	       uint64_t deadline_ns, struct json_object **result, struct err *e)
{
	struct remote_request q;
	int rc;

	if (result)
		*result = NULL;
	rc = remote_begin(r, method, params, deadline_ns, &q, e);
	return rc ? rc : remote_end(r, &q, deadline_ns, result, e);
}

int
remote_call(struct remote *r, const char *method, struct json_object *params,
	    struct json_object **result, struct err *e)
{
	return remote_call_by(r, method, params, clock_deadline(r->op_timeout_ms), result, e);
}

int
remote_post(struct remote *r, const char *method, struct json_object *params, int64_t *id,
	    struct err *e)
{
	int rc;

	pthread_mutex_lock(&r->lock);
	rc = remote_usable(r, e);
	if (rc)
		json_object_put(params);
	else
		rc = remote_send(r, method, params, clock_deadline(r->op_timeout_ms), id, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int
remote_take(struct remote *r, const char *method, int64_t id, struct json_object **result,
	    struct err *e)
{
	int rc;

	pthread_mutex_lock(&r->lock);
	rc = remote_usable(r, e);
	if (!rc)
		rc = remote_receive(r, id, clock_deadline(r->op_timeout_ms), result, e);
	rc = remote_silent(r, method, rc, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

bool
remote_is_broken(struct remote *r)
{
	bool broken;

	pthread_mutex_lock(&r->lock);
	broken = r->broken;
	pthread_mutex_unlock(&r->lock);
	return broken;
}

/* ---- signs of life ---- */

static uint64_t
remote_heard(const struct remote *r)
{
	uint64_t n = 0;

	for (unsigned i = 0; r->lanes && i < r->terms.lanes; i++)
		n += atomic_load_explicit(&r->lanes[i].counters.events, memory_order_relaxed);
	return n;
}

static int
ping_await(struct remote *r, unsigned timeout_ms, const _Atomic int *cancel, struct err *e)
{
	uint64_t heard = remote_heard(r), deadline_ns = clock_deadline(timeout_ms);

	for (;;) {
		uint64_t look_ns = clock_deadline(PING_LOOK_MS);
		int rc = remote_answer(r, r->ping_id, look_ns < deadline_ns ? look_ns : deadline_ns,
				       NULL, e);

		if (rc != REPL_E_TIMEOUT || r->await_id > r->ping_id) {
			r->ping_id = 0;
			r->broken |= rc != 0;
			return rc;
		}
		if (cancel && atomic_load(cancel))
			return 0;
		if (remote_heard(r) != heard) {
			heard = remote_heard(r);
			deadline_ns = clock_deadline(timeout_ms);
		}
		if (clock_now_ns() >= deadline_ns)
			return err_set(e, REPL_E_TIMEOUT, "%s has been silent for %u ms: timed out",
				       r->target.host, timeout_ms);
	}
}

int
remote_ping(struct remote *r, struct json_object *params, unsigned timeout_ms,
	    const _Atomic int *cancel, struct err *e)
{
	int rc;

	if (pthread_mutex_trylock(&r->lock)) {
		json_object_put(params);
		return 0;
	}
	rc = remote_usable(r, e);
	if (rc || r->ping_id)
		json_object_put(params);
	else
		rc = remote_send(r, "ping", params, clock_deadline(timeout_ms), &r->ping_id, e);
	if (!rc)
		rc = ping_await(r, timeout_ms, cancel, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int
remote_beat(struct remote *r, struct err *e)
{
	struct json_object *params =
		r->report ? r->report(r->report_arg) : json_object_new_object();

	return remote_call(r, "ping", params, NULL, e);
}

void
remote_reports(struct remote *r, struct json_object *(*report)(void *arg), void *arg)
{
	r->report = report;
	r->report_arg = arg;
}

/* ---- opening ---- */

/* By name as far as that is known without asking a name service, which knows no deadline. */
static const char *
peer_user(void)
{
	const char *user = secure_getenv("USER");

	if (!user)
		user = secure_getenv("LOGNAME");
	return user ? user : geteuid() == 0 ? "root" : "?";
}

/* As the target shows it: what is no printable ASCII, or no UTF-8 at all, is no text of JSON's. */
static void
self_set(struct remote *r)
{
	char host[64] = "";

	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(r->self, sizeof(r->self), "%.48s@%s pid %ld", peer_user(), host,
		       (long)getpid());
	for (char *at = r->self; *at; at++) {
		if (*at < 0x20 || *at > 0x7e)
			*at = '?';
	}
}

static int
remote_hello(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	struct json_object *params = json_object_new_object(), *versions, *result = NULL;
	uint64_t version, heartbeat;
	int rc;

	versions = json_object_new_array();
	control_append(versions, json_object_new_int(CONTROL_VERSION));
	control_add(params, "versions", versions);
	control_add(params, "software", json_object_new_string("librepl " REPL_VERSION_TEXT));
	self_set(r);
	control_add(params, "peer", json_object_new_string(r->self));
	rc = remote_call_by(r, "hello", params, deadline_ns, &result, e);
	/* A greeting of the shell's, or another program's. */
	if (rc == REPL_E_PROTOCOL && r->broken)
		return err_prefix(e,
				  "%s: this is no answer of repld's: it has to be what the command "
				  "there runs, and the account's shell must print nothing before",
				  r->target.host);
	if (rc)
		return rc;
	rc = control_get_u64(result, "version", CONTROL_VERSION, CONTROL_VERSION, &version, e);
	if (!rc)
		rc = control_get_u64(result, "heartbeat_ms", 1, 3600000, &heartbeat, e);
	if (!rc)
		r->heartbeat_ms = (unsigned)heartbeat;
	json_object_put(result);
	return rc ? err_set(e, REPL_E_PROTOCOL, "hello: bad answer from %s", r->target.host) : 0;
}

int
remote_new(const struct repl_config *c, const struct target *t, const struct remote_hooks *hooks,
	   struct remote **out, struct err *e)
{
	struct channel_options o = {.identity = c->identity,
				    .known_hosts = c->known_hosts,
				    .command = c->command ? c->command : "repld session"};
	struct remote *r = calloc(1, sizeof(*r));
	uint64_t deadline_ns = clock_deadline(c->connect_timeout_ms);
	int rc;

	*out = NULL;
	if (!r)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	r->target = *t;
	r->connect_timeout_ms = c->connect_timeout_ms;
	r->op_timeout_ms = c->op_timeout_ms;
	r->busy_poll_ns = (uint64_t)c->busy_poll_us * 1000;
	(void)snprintf(r->provider, sizeof(r->provider), "%s", c->provider ? c->provider : "auto");
	r->method = c->method - 1;
	r->next_id = r->await_id = 1;
	line_buf_init(&r->lines);
	if (pthread_mutex_init(&r->lock, NULL)) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	r->lock_made = true;
	if (pthread_mutex_init(&r->info_lock, NULL)) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	r->info_lock_made = true;
	if (hooks) {
		r->cancel = o.cancel = hooks->cancel;
		o.fds = hooks->fds;
	}
	o.target = &r->target;
	r->warm = hooks && hooks->lanes ? fab_warm_new() : NULL;
	rc = channel_open(&o, deadline_ns, &r->channel, e);
	if (!rc)
		rc = remote_hello(r, deadline_ns, e);
	if (rc)
		goto out;
	*out = r;
	r = NULL;
out:
	remote_free(r, 0);
	return rc;
}

void
remote_leave(struct remote *r, uint64_t deadline_ns)
{
	remote_free_lanes(r);
	if (r->broken || !r->pool_open)
		return;
	if (remote_begin(r, "pool.close", json_object_new_object(), deadline_ns, &r->leave, NULL))
		r->leave.method = NULL;
	r->pool_open = false;
}

void
remote_free(struct remote *r, unsigned timeout_ms)
{
	uint64_t deadline_ns = clock_deadline(timeout_ms);

	if (!r)
		return;
	if (timeout_ms)
		remote_leave(r, deadline_ns);
	else
		remote_free_lanes(r);
	if (r->leave.method)
		(void)remote_end(r, &r->leave, deadline_ns, NULL, NULL);
	if (timeout_ms && !r->broken)
		(void)remote_call_by(r, "bye", json_object_new_object(), deadline_ns, NULL, NULL);
	channel_free(r->channel);
	fab_warm_free(r->warm);
	line_buf_fini(&r->lines);
	if (r->info_lock_made)
		(void)pthread_mutex_destroy(&r->info_lock);
	if (r->lock_made)
		(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

void
remote_bound(struct remote *r, const _Atomic uint64_t *until)
{
	r->until = until;
}

void
remote_detach(struct remote *r)
{
	r->cancel = NULL;
	r->report = NULL;
	channel_detach(r->channel);
}

void
remote_set_op_timeout(struct remote *r, unsigned ms)
{
	r->op_timeout_ms = ms;
}

uint64_t
remote_trip_ns(const struct remote *r)
{
	return atomic_load(&r->trip_ns);
}

const struct target *
remote_target(const struct remote *r)
{
	return &r->target;
}

const char *
remote_next_step(const struct remote *r)
{
	return r->next_step;
}

unsigned
remote_op_timeout_ms(const struct remote *r)
{
	return r->op_timeout_ms;
}

void
remote_abandon(struct remote *r)
{
	if (r->channel)
		channel_abandon(r->channel);
	remote_abandon_lanes(r);
}

unsigned
remote_heartbeat_ms(const struct remote *r)
{
	return r->heartbeat_ms;
}

/* ---- pool ---- */

static int
remote_profile_parse(struct json_object *result, struct profile *p, struct err *e)
{
	struct json_object *o = NULL;

	if (!json_object_object_get_ex(result, "profile", &o) ||
	    !json_object_is_type(o, json_type_object))
		return err_set(e, REPL_E_PROTOCOL, "answer of the target: no profile");
	replica_profile_parse(o, p);
	return 0;
}

uint64_t
remote_hash_ranges(const struct remote *r)
{
	return r->hash_ranges;
}

bool
remote_hash_key(const struct remote *r)
{
	return r->hash_key;
}

int
remote_random(const struct remote *r, void *to, size_t len, struct err *e)
{
	return channel_random(r->channel, to, len, e);
}

uint64_t
remote_journal_max(const struct remote *r)
{
	return r->journal_max;
}

void
remote_params_add_chain(struct json_object *params, const struct generation *g)
{
	struct json_object *history = json_object_new_array();
	char text[GEN_TEXT_SIZE];

	gen_id_format(&g->current, text);
	control_add(params, "generation", json_object_new_string(text));
	for (unsigned i = 0; i < GEN_HISTORY && !gen_id_is_nil(&g->history[i]); i++) {
		gen_id_format(&g->history[i], text);
		control_append(history, json_object_new_string(text));
	}
	control_add(params, "history", history);
}

void
remote_params_add_position(struct json_object *params, uint64_t position)
{
	if (position)
		control_add(params, "position", json_object_new_int64((int64_t)position));
}

/* Otherwise somebody would look for another program. */
static int
busy_by_self(const struct remote *r, int rc, struct err *e)
{
	const char *at = rc == REPL_E_BUSY && e ? strstr(e->text, r->self) : NULL;

	if (!at || at[strlen(r->self)] != '\0')
		return rc;
	return err_suffix(e,
			  ", which is what this program is called: is another of its targets the "
			  "same pool by another name? or its last session has not ended yet");
}

/*
 * Who tells journal_max, be it 0, takes POSITIONs, which are a little older. To others they are an
 * unknown operation, which ends the lane at the first drain, again and again.
 */
static int
positions_check(const struct remote *r, struct json_object *result, struct err *e)
{
	if (!r->queued || !r->write || control_has(result, "journal_max"))
		return 0;
	return err_set(e, REPL_E_VERSION,
		       "the target's repld is older and takes no replica that drains do not wait "
		       "for ('async', 'ack = quorum'): upgrade it there");
}

/* params is taken. */
static int
pool_open_with(struct remote *r, struct json_object *params, enum remote_mode mode, struct err *e)
{
	static const char *const names[] = {
		[REMOTE_READ] = "read", [REMOTE_STABLE] = "stable", [REMOTE_WRITE] = "write"};
	struct json_object *result = NULL;
	uint64_t epoch;
	int rc;

	control_add(params, "mode", json_object_new_string(names[mode]));
	if (mode == REMOTE_WRITE && (r->queued || r->waits))
		control_add(params, "waits", json_object_new_boolean(r->waits));
	if (mode == REMOTE_WRITE && r->keeps_journal)
		control_add(params, "resume", json_object_new_boolean(true));
	rc = remote_call(r, "pool.open", params, &result, e);
	if (rc)
		return busy_by_self(r, rc, e);
	r->pool_open = true;
	r->write = mode == REMOTE_WRITE;
	rc = replica_info_parse(result, &r->info, e);
	r->asked_size = 0;
	if (!rc)
		rc = control_get_u64(result, "epoch", 0, UINT32_MAX, &epoch, e);
	if (!rc)
		rc = remote_profile_parse(result, &r->profile, e);
	/* Targets of before know of none, and a request that they don't know ends the session. */
	r->journal_max = 0;
	if (!rc && control_has(result, "journal_max"))
		rc = control_get_u64(result, "journal_max", 0, INT64_MAX, &r->journal_max, e);
	r->hash_ranges = 0;
	if (!rc && control_has(result, "hash_ranges"))
		rc = control_get_u64(result, "hash_ranges", 0, INT64_MAX, &r->hash_ranges, e);
	r->hash_key = false;
	if (!rc && control_has(result, "hash_key"))
		rc = control_get_bool(result, "hash_key", &r->hash_key, e);
	rc = control_answer_bad(rc, "pool.open", e);
	if (!rc)
		r->epoch = (uint32_t)epoch;
	if (!rc)
		rc = positions_check(r, result, e);
	json_object_put(result);
	return rc;
}

int
remote_pool_open(struct remote *r, const char *name, enum remote_mode mode, struct err *e)
{
	struct json_object *params = json_object_new_object();

	control_add(params, "name", json_object_new_string(name));
	return pool_open_with(r, params, mode, e);
}

int
remote_pool_open_as(struct remote *r, const char *name, const struct generation *chain, bool force,
		    struct err *e)
{
	struct json_object *params = json_object_new_object();

	control_add(params, "name", json_object_new_string(name));
	if (chain && !gen_id_is_nil(&chain->current))
		remote_params_add_chain(params, chain);
	if (force)
		control_add(params, "force", json_object_new_boolean(true));
	return pool_open_with(r, params, REMOTE_WRITE, e);
}

int
remote_pool_close(struct remote *r, struct err *e)
{
	remote_free_lanes(r);
	r->pool_open = false;
	return remote_call(r, "pool.close", json_object_new_object(), NULL, e);
}

/* The pool's size before a request that has it grow to asked_size, if that is not 0. */
static uint64_t
remote_info_begin(struct remote *r, uint64_t asked_size)
{
	uint64_t size;

	pthread_mutex_lock(&r->info_lock);
	size = r->info.meta.pool_size;
	if (asked_size > r->asked_size)
		r->asked_size = asked_size;
	pthread_mutex_unlock(&r->info_lock);
	return size;
}

/*
 * What other calls may find: never half of it, nor another call's answer. The size is what the
 * last growth made it. An answer may tell of one that another call is just asking for, but of no
 * other size: who goes by it would read behind the local data.
 */
static int
remote_info_set(struct remote *r, struct replica_info *info, uint64_t before, const char *method,
		struct err *e)
{
	uint64_t now, most, told = info->meta.pool_size;

	pthread_mutex_lock(&r->info_lock);
	now = r->info.meta.pool_size;
	most = r->asked_size > now ? r->asked_size : now;
	if (told >= before && told <= most) {
		info->meta.pool_size = now;
		r->info = *info;
	}
	pthread_mutex_unlock(&r->info_lock);
	if (told >= before && told <= most)
		return 0;
	return err_set(e, REPL_E_PROTOCOL, "%s: the pool has %llu bytes, not %llu", method,
		       (unsigned long long)told, (unsigned long long)now);
}

/* It tells what is in its sidecar now. */
static int
remote_mark_check(const struct replica_info *info, const struct remote_mark *m, struct err *e)
{
	const struct sidecar *meta = &info->meta;

	bool part = m->position && meta->state == SIDECAR_UNKNOWN && meta->position == m->position;

	if ((meta->state == m->state || part) &&
	    (gen_id_is_nil(&m->current) || gen_id_equal(&meta->generation.current, &m->current)))
		return 0;
	return err_set(e, REPL_E_PROTOCOL, "pool.mark: the target has recorded something else: %s",
		       sidecar_state_name(meta->state));
}

static int
mark_post(struct remote *r, enum sidecar_state state, const struct generation *g, uint64_t position,
	  uint64_t deadline_ns, struct remote_mark *m, struct err *e)
{
	struct json_object *params = json_object_new_object();

	*m = (struct remote_mark){
		.state = state, .position = position, .size = remote_info_begin(r, 0)};
	control_add(params, "state", json_object_new_string(sidecar_state_name(state)));
	if (g) {
		m->current = g->current;
		remote_params_add_chain(params, g);
	}
	remote_params_add_position(params, position);
	return remote_begin(r, "pool.mark", params, deadline_ns, &m->request, e);
}

int
remote_mark_post(struct remote *r, enum sidecar_state state, const struct generation *g,
		 uint64_t deadline_ns, struct remote_mark *m, struct err *e)
{
	return mark_post(r, state, g, 0, deadline_ns, m, e);
}

int
remote_mark_take(struct remote *r, const struct remote_mark *m, uint64_t look_ns,
		 uint64_t deadline_ns, bool *there, struct err *e)
{
	struct json_object *result = NULL;
	struct replica_info info;
	int rc;

	rc = remote_end_or_look(r, &m->request, look_ns, deadline_ns, there, &result, e);
	if (!rc)
		rc = replica_info_parse(result, &info, e);
	if (!rc)
		rc = remote_mark_check(&info, m, e);
	if (!rc)
		rc = remote_info_set(r, &info, m->size, m->request.method, e);
	json_object_put(result);
	return rc;
}

int
remote_pool_mark_by(struct remote *r, enum sidecar_state state, const struct generation *g,
		    uint64_t deadline_ns, struct err *e)
{
	struct remote_mark m;
	int rc = remote_mark_post(r, state, g, deadline_ns, &m, e);
	bool there;

	return rc ? rc : remote_mark_take(r, &m, deadline_ns, deadline_ns, &there, e);
}

int
remote_pool_mark_part(struct remote *r, const struct generation *g, uint64_t position,
		      struct err *e)
{
	uint64_t deadline_ns = clock_deadline(r->op_timeout_ms);
	struct remote_mark m;
	int rc = mark_post(r, SIDECAR_OUTDATED, g, position, deadline_ns, &m, e);
	bool there;

	return rc ? rc : remote_mark_take(r, &m, deadline_ns, deadline_ns, &there, e);
}

/* The answer to a growth, which is done. */
static int
remote_grown(struct remote *r, const struct replica_info *info, uint64_t size, struct err *e)
{
	if (info->meta.pool_size != size)
		return err_set(e, REPL_E_PROTOCOL, "pool.grow: the pool has %llu bytes, not %llu",
			       (unsigned long long)info->meta.pool_size, (unsigned long long)size);
	pthread_mutex_lock(&r->info_lock);
	r->info = *info;
	pthread_mutex_unlock(&r->info_lock);
	return r->regions.r ? regions_grow(&r->regions, size, e) : 0;
}

int
remote_pool_grow(struct remote *r, uint64_t size, bool prepare, uint64_t deadline_ns, struct err *e)
{
	struct json_object *params, *result = NULL;
	struct replica_info info;
	uint64_t before;
	int rc;

	/* Now, since a target that has grown stays so. */
	if (prepare && r->regions.r && regions_grow_check(&r->regions, size, e))
		return REPL_E_LIMIT;
	before = remote_info_begin(r, prepare ? 0 : size);
	params = json_object_new_object();
	control_add(params, "size", json_object_new_int64((int64_t)size));
	if (prepare)
		control_add(params, "prepare", json_object_new_boolean(true));
	rc = remote_call_by(r, "pool.grow", params, deadline_ns, &result, e);
	if (!rc)
		rc = replica_info_parse(result, &info, e);
	if (!rc)
		rc = prepare ? remote_info_set(r, &info, before, "pool.grow", e)
			     : remote_grown(r, &info, size, e);
	json_object_put(result);
	return rc;
}

int
remote_pool_mark(struct remote *r, enum sidecar_state state, const struct generation *g,
		 struct err *e)
{
	return remote_pool_mark_by(r, state, g, clock_deadline(r->op_timeout_ms), e);
}

const struct replica_info *
remote_info(const struct remote *r)
{
	return &r->info;
}

int
remote_refuse_headers(const struct remote *r, struct err *e)
{
	if (!r->info.header)
		return 0;
	return err_set(
		e, REPL_E_REFUSED,
		"pool '%s' lies in a pool set whose parts have headers of PMDK's: use pmempool "
		"with a set file that has 'REPLICA HOST %s', see librpmem(7)",
		r->info.name, r->info.name);
}

const struct profile *
remote_profile(const struct remote *r)
{
	return &r->profile;
}

uint32_t
remote_epoch(const struct remote *r)
{
	return r->epoch;
}
