/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "hint.h"
#include "interrupt.h"
#include "out.h"
#include "poolfile.h"
#include "sidecar.h"
#include "statussock.h"

#define ANSWER_MS     5000
#define ANSWER_MIN_MS 1000 /* by the caller's deadline */

bool
ask_is_file(const char *arg)
{
	return arg[0] == '/' || arg[0] == '.';
}

char *
ask_word(const char *file)
{
	char *path = NULL, *word;

	if (ask_is_file(file))
		return out_quote(file);
	if (asprintf(&path, "./%s", file) < 0)
		return NULL;
	word = out_quote(path);
	free(path);
	return word;
}

void
ask_next(struct ctl *c, const char *file)
{
	char *word = poolfile_word(file);
	struct stat st;
	bool is_socket = stat(file, &st) == 0 && S_ISSOCK(st.st_mode);

	ctl_next(c,
		 "look at the program that has it open (fuser -v %s%s): its process may be "
		 "stopped, hang, serve too many, or be none of librepl's; what a replica has: "
		 "replctl why TARGET/POOL",
		 word ? word : "FILE", is_socket ? "" : SIDECAR_SUFFIX);
	free(word);
}

void
ask_init(struct ask *a, const struct ctl *c)
{
	a->fd = -1;
	a->ctl = c;
	a->id = 0;
	a->until_ns = 0;
	line_buf_init(&a->in);
}

void
ask_fini(struct ask *a)
{
	if (a->fd >= 0)
		(void)close(a->fd);
	line_buf_fini(&a->in);
	a->fd = -1;
}

/* The program knows its file by that; one that is named for a device need not be there. */
static char *
real_name(const char *file)
{
	char *real = realpath(file, NULL), *dir, *path;
	const char *slash = strrchr(file, '/');

	if (real || errno != ENOENT)
		return real;
	dir = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
	real = dir ? realpath(dir, NULL) : NULL;
	if (!real || asprintf(&path, "%s/%s", real, slash ? slash + 1 : file) < 0)
		path = NULL;
	free(dir);
	free(real);
	return path;
}

static int
connect_by(const char *name, struct err *e)
{
	struct stat st;
	bool is_socket = stat(name, &st) == 0 && S_ISSOCK(st.st_mode);
	char *path = NULL;
	int fd;

	if (asprintf(&path, "%s%s", name, is_socket ? "" : STATUSSOCK_SUFFIX) < 0)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	fd = statussock_connect(path, e);
	free(path);
	return fd;
}

static bool
is_one_file(const char *a, const char *b)
{
	struct stat one, other;

	return strcmp(a, b) == 0 || (stat(a, &one) == 0 && stat(b, &other) == 0 &&
				     one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

/* At the socket that the configuration names answers a program that has this pool. */
static void
connect_named(struct ask *a, const char *real)
{
	const char *name = a->ctl->cfg ? a->ctl->cfg->status_socket : NULL;
	struct json_object *status = NULL;
	struct ask other;

	if (!name || name[0] != '/')
		return;
	ask_init(&other, a->ctl);
	other.until_ns = a->until_ns;
	other.fd = statussock_connect(name, NULL);
	if (other.fd >= 0 && !ask_raw(&other, "status", NULL, &status, NULL) &&
	    is_one_file(out_member(status, "pool"), real)) {
		a->fd = other.fd;
		other.fd = -1;
	}
	json_object_put(status);
	ask_fini(&other);
}

int
ask_open(struct ask *a, const char *file, struct err *e)
{
	char *real = real_name(file);
	struct err other;

	if (!real)
		return err_errno(e, err_from_errno(errno), errno, "%s", file);
	err_clear(&other);
	a->fd = connect_by(real, e);
	/* A pool-file that is a link to a device is no name of that. */
	if (a->fd == REPL_E_NOT_FOUND && strcmp(file, real) != 0) {
		a->fd = connect_by(file, &other);
		if (a->fd != REPL_E_NOT_FOUND)
			(void)err_copy(e, &other);
	}
	if (a->fd == REPL_E_NOT_FOUND)
		connect_named(a, real);
	free(real);
	if (a->fd >= 0)
		err_clear(e);
	if (a->fd == REPL_E_NOT_FOUND && access(file, F_OK) && errno == ENOENT)
		return err_errno(e, REPL_E_NOT_FOUND, ENOENT, "%s", file);
	return a->fd < 0 ? a->fd : 0;
}

/* The next message; *out is NULL when none has come by the deadline, or a signal has. */
static int
receive(struct ask *a, uint64_t deadline_ns, struct json_object **out, struct err *e)
{
	struct pollfd p = {.fd = a->fd, .events = POLLIN};
	size_t len, room;
	char *line, *space;
	ssize_t n;
	int rc;

	*out = NULL;
	while ((line = line_buf_next(&a->in, &len)) == NULL) {
		n = poll(&p, 1, clock_left_ms(deadline_ns));
		if ((n == 0 && clock_now_ns() >= deadline_ns) ||
		    (n < 0 && errno == EINTR && interrupt_seen()))
			return 0;
		if (n <= 0)
			continue;
		rc = line_buf_space(&a->in, &space, &room, e);
		if (rc)
			return rc;
		n = recv(a->fd, space, room, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return err_set(e, REPL_E_LOST,
				       "the program has closed the pool, or "
				       "serves too many who ask");
		line_buf_filled(&a->in, (size_t)n);
	}
	return control_parse(line, len, out, e);
}

static int
post(struct ask *a, const char *method, struct json_object *params, struct err *e)
{
	struct json_object *o = control_request_new(++a->id, method, params);
	size_t len = 0;
	char *line = o ? control_line(o, &len) : NULL;
	ssize_t n;

	json_object_put(o);
	if (!line)
		return err_set(e, REPL_E_NOMEM, "request %s: out of memory", method);
	n = send(a->fd, line, len, MSG_NOSIGNAL);
	free(line);
	if (n != (ssize_t)len)
		return err_set(e, REPL_E_LOST,
			       "the program has closed the pool, or serves too "
			       "many who ask");
	return 0;
}

static uint64_t
answer_deadline(const struct ask *a)
{
	uint64_t deadline_ns = clock_deadline(a->until_ns ? ANSWER_MIN_MS : ANSWER_MS);

	return a->until_ns > deadline_ns ? a->until_ns : deadline_ns;
}

int
ask_raw(struct ask *a, const char *method, struct json_object *params, struct json_object **result,
	struct err *e)
{
	uint64_t deadline_ns = answer_deadline(a);
	struct json_object *o = NULL;
	int rc = post(a, method, params, e);

	do {
		json_object_put(o);
		o = NULL;
		if (!rc)
			rc = receive(a, deadline_ns, &o, e);
		if (!rc && !o)
			rc = err_set(e, REPL_E_TIMEOUT, "the program does not answer");
	} while (!rc && control_has(o, "method")); /* an event that was on its way */
	if (!rc)
		rc = control_answer_check(o, a->id, result, NULL, 0, e);
	json_object_put(o);
	return rc;
}

/* The program does not know by what options its replicas are reached from here. */
static void
complete_next(const struct ask *a, struct json_object *replica)
{
	struct json_object *next = NULL;
	char text[CTL_NEXT_MAX];
	int n;

	if (!json_object_is_type(replica, json_type_object) ||
	    !json_object_object_get_ex(replica, "next", &next) ||
	    !json_object_is_type(next, json_type_string))
		return;
	n = snprintf(text, sizeof(text), "%s", json_object_get_string(next));
	if (n < 0 || n >= (int)sizeof(text))
		return;
	hint_complete(text, sizeof(text), &a->ctl->options);
	control_add(replica, "next", json_object_new_string(text));
}

static void
complete_all(const struct ask *a, struct json_object *answer)
{
	struct json_object *list = NULL;

	if (!json_object_is_type(answer, json_type_object) ||
	    !json_object_object_get_ex(answer, "replicas", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++)
		complete_next(a, json_object_array_get_idx(list, i));
}

int
ask_call(struct ask *a, const char *method, struct json_object *params, struct json_object **result,
	 struct err *e)
{
	struct json_object *raw = NULL;
	int rc = ask_raw(a, method, params, &raw, e);

	if (!rc)
		*result = out_clean_json(raw);
	if (!rc)
		complete_all(a, *result);
	json_object_put(raw);
	return rc;
}

int
ask_event(struct ask *a, unsigned timeout_ms, struct json_object **out, struct err *e)
{
	struct json_object *o = NULL, *params = NULL;
	int rc = receive(a, clock_deadline(timeout_ms), &o, e);

	*out = NULL;
	if (!rc && o && json_object_object_get_ex(o, "params", &params))
		*out = out_clean_json(params);
	complete_next(a, *out);
	json_object_put(o);
	return rc;
}
