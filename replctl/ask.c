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
#include "interrupt.h"
#include "out.h"
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
ask_init(struct ask *a)
{
	a->fd = -1;
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

int
ask_open(struct ask *a, const char *file, struct err *e)
{
	/* The program knows its file by its real name. */
	char *real = realpath(file, NULL), *path = NULL;
	struct stat st;
	int n;

	if (!real)
		return err_errno(e, err_from_errno(errno), errno, "%s", file);
	if (stat(real, &st) == 0 && S_ISSOCK(st.st_mode))
		n = asprintf(&path, "%s", real);
	else
		n = asprintf(&path, "%s" STATUSSOCK_SUFFIX, real);
	free(real);
	if (n < 0)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	a->fd = statussock_connect(path, e);
	free(path);
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

int
ask_call(struct ask *a, const char *method, struct json_object *params, struct json_object **result,
	 struct err *e)
{
	struct json_object *raw = NULL;
	int rc = ask_raw(a, method, params, &raw, e);

	if (!rc)
		*result = out_clean_json(raw);
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
	json_object_put(o);
	return rc;
}
