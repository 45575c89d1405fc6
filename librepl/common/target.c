/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define SIDECAR_ENDING ".repl"

/* ctype.h follows the locale; names must mean the same everywhere. */
static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_printable(char c)
{
	return c >= 0x20 && c <= 0x7e;
}

/* ---- pool names ---- */

/* A component that may hold anything is not repeated in the text. */
static int
component_check(const char *at, size_t len, struct err *e)
{
	size_t ending = strlen(SIDECAR_ENDING);

	if (len == 0)
		return err_set(e, REPL_E_INVAL,
			       "pool name has an empty component: "
			       "take out a leading, trailing or double '/'");
	for (size_t i = 0; i < len; i++)
		if (!is_printable(at[i]))
			return err_set(e, REPL_E_INVAL,
				       "pool name holds the character 0x%02x: use printable ASCII",
				       (unsigned char)at[i]);
	if (len > TARGET_COMPONENT_MAX)
		return err_set(
			e, REPL_E_INVAL,
			"pool name has a component of %zu characters, at most %d are allowed", len,
			TARGET_COMPONENT_MAX);
	if (at[0] == '.')
		return err_set(e, REPL_E_INVAL, "pool name component '%.*s' begins with a dot",
			       (int)len, at);
	if (len >= ending && memcmp(at + len - ending, SIDECAR_ENDING, ending) == 0)
		return err_set(e, REPL_E_INVAL,
			       "pool name component '%.*s' ends in " SIDECAR_ENDING
			       ", which is for metadata files",
			       (int)len, at);
	return 0;
}

int
pool_name_check(const char *name, struct err *e)
{
	size_t len = strnlen(name, TARGET_POOL_MAX + 1);

	if (len == 0)
		return err_set(e, REPL_E_INVAL, "pool name is empty");
	if (len > TARGET_POOL_MAX)
		return err_set(e, REPL_E_INVAL, "pool name is longer than %d characters",
			       TARGET_POOL_MAX);
	if (name[0] == '/')
		return err_set(e, REPL_E_INVAL,
			       "pool name is an absolute path: name it relative to the pool "
			       "directory of the target");
	for (const char *at = name;; at++) {
		size_t part = strcspn(at, "/");
		int ret = component_check(at, part, e);

		if (ret)
			return ret;
		at += part;
		if (*at == '\0')
			return 0;
	}
}

/* ---- targets ---- */

static int
user_take(const char *at, size_t len, struct target *t, struct err *e)
{
	if (len == 0)
		return err_set(e, REPL_E_INVAL, "target has an empty user name before '@'");
	if (len >= TARGET_USER_MAX)
		return err_set(e, REPL_E_INVAL,
			       "target has a user name of %zu characters, at most %d are allowed",
			       len, TARGET_USER_MAX - 1);
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(at[i]) && !strchr("._-+@", at[i]))
			return err_set(e, REPL_E_INVAL,
				       "target has the character 0x%02x in the user name",
				       (unsigned char)at[i]);
	if (at[0] == '-')
		return err_set(e, REPL_E_INVAL, "target has a user name that begins with '-'");
	memcpy(t->user, at, len);
	t->user[len] = '\0';
	return 0;
}

static int
host_take(const char *at, size_t len, const char *more, struct target *t, struct err *e)
{
	if (len == 0)
		return err_set(e, REPL_E_INVAL,
			       "target has no host: the form is [user@]host[:port]/pool");
	if (len >= TARGET_HOST_MAX)
		return err_set(e, REPL_E_INVAL,
			       "target has a host name of %zu characters, at most %d are allowed",
			       len, TARGET_HOST_MAX - 1);
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(at[i]) && !strchr(more, at[i]))
			return err_set(e, REPL_E_INVAL,
				       "target has the character 0x%02x in the host name",
				       (unsigned char)at[i]);
	if (at[0] == '-')
		return err_set(e, REPL_E_INVAL, "target has a host name that begins with '-'");
	memcpy(t->host, at, len);
	t->host[len] = '\0';
	return 0;
}

/* The part before a zone ("%eth0") must be an IPv6 address. */
static int
ipv6_take(const char *at, size_t len, struct target *t, struct err *e)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct in6_addr addr;
	size_t addr_len;
	int ret = host_take(at, len, ":.-_%", t, e);

	if (ret)
		return ret;
	addr_len = strcspn(t->host, "%");
	if (addr_len < sizeof(text))
		memcpy(text, t->host, addr_len);
	if (inet_pton(AF_INET6, text, &addr) != 1 || t->host[len - 1] == '%')
		return err_set(e, REPL_E_INVAL, "target has '[%s]', which is no IPv6 address",
			       t->host);
	return 0;
}

static int
port_take(const char *at, size_t len, struct target *t, struct err *e)
{
	unsigned port = 0;
	bool good = len > 0 && len <= 5;

	for (size_t i = 0; good && i < len; i++) {
		good = is_digit(at[i]);
		port = port * 10 + (unsigned)(at[i] - '0');
	}
	if (!good || port == 0 || port > 65535)
		return err_set(e, REPL_E_INVAL,
			       "target has no port from 1 to 65535 after the host's ':'");
	t->port = port;
	return 0;
}

/* "host", "host:port", "[address]", "[address]:port" */
static int
host_port_take(const char *at, size_t len, struct target *t, struct err *e)
{
	bool bracket = len > 0 && at[0] == '[';
	const char *end = memchr(at, bracket ? ']' : ':', len); /* behind the host */
	size_t host_len = end ? (size_t)(end - at) : len;
	int ret;

	if (bracket && !end)
		return err_set(e, REPL_E_INVAL, "target has '[' without ']'");
	if (!bracket && end && memchr(end + 1, ':', len - host_len - 1))
		return err_set(e, REPL_E_INVAL,
			       "target has more than one ':': write an IPv6 address in brackets");
	if (bracket) {
		ret = ipv6_take(at + 1, host_len - 1, t, e);
		end++;
	} else {
		ret = host_take(at, host_len, "._-", t, e);
	}
	if (ret || !end)
		return ret;
	host_len = (size_t)(end - at);
	if (host_len == len)
		return 0;
	if (*end != ':')
		return err_set(e, REPL_E_INVAL, "target has '%c' after ']', where ':port' may be",
			       is_printable(*end) ? *end : '?');
	return port_take(end + 1, len - host_len - 1, t, e);
}

int
target_parse(const char *text, bool need_pool, struct target *t, struct err *e)
{
	size_t front = strcspn(text, "/");
	const char *at = memrchr(text, '@', front);
	const char *host = at ? at + 1 : text;
	struct target have = {.port = 0};
	int ret = 0;

	if (at)
		ret = user_take(text, (size_t)(at - text), &have, e);
	if (!ret)
		ret = host_port_take(host, front - (size_t)(host - text), &have, e);
	if (ret)
		return ret;
	if (text[front] == '/') {
		ret = pool_name_check(text + front + 1, e);
		if (ret)
			return ret;
		memcpy(have.pool, text + front + 1, strlen(text + front + 1) + 1);
	} else if (need_pool) {
		return err_set(e, REPL_E_INVAL,
			       "target '%s' names no pool: the form is [user@]host[:port]/pool",
			       text);
	}
	*t = have;
	return 0;
}

void
target_format(const struct target *t, char *out, size_t size)
{
	bool bracket = strchr(t->host, ':') != NULL;
	char port[16] = "";

	if (t->port)
		(void)snprintf(port, sizeof(port), ":%u", t->port);
	(void)snprintf(out, size, "%s%s%s%s%s%s%s%s", t->user, t->user[0] ? "@" : "",
		       bracket ? "[" : "", t->host, bracket ? "]" : "", port, t->pool[0] ? "/" : "",
		       t->pool);
}

const char *
target_address(const char *host, unsigned port, char out[TARGET_ADDRESS_MAX])
{
	(void)snprintf(out, TARGET_ADDRESS_MAX, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
		       port);
	return out;
}
