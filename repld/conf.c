/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "conffile.h"
#include "filewrite.h"
#include "spin.h"
#include "wire.h"

#define SECTION  "repld"
#define HOST_MAX 64
#define USER_MAX 32

static const char *const level_names[] = {"error", "warning", "info", "debug", NULL};

static bool
is_address(const char *text, int family)
{
	struct addrinfo hints = {.ai_family = family, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *list = NULL;

	if (getaddrinfo(text, NULL, &hints, &list))
		return false;
	freeaddrinfo(list);
	return true;
}

static bool
is_no_place(const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)sa;

	if (sa->sa_family == AF_INET)
		return in->sin_addr.s_addr == htonl(INADDR_ANY) ||
		       IN_MULTICAST(ntohl(in->sin_addr.s_addr));
	return IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) || IN6_IS_ADDR_MULTICAST(&in6->sin6_addr);
}

static bool
lacks_zone(const struct sockaddr *sa)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)sa;

	return sa->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) &&
	       in6->sin6_scope_id == 0;
}

/* One that initiators can connect to: it is told to them. The zone is each side's own. */
static int
check_place(const char *value, bool bound, struct err *e)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *list = NULL;
	int rc = 0;

	if (getaddrinfo(value, NULL, &hints, &list))
		return err_set(e, REPL_E_CONFIG, "'%s' is not a numeric IPv4 or IPv6 address",
			       value);
	if (is_no_place(list->ai_addr))
		rc = err_set(e, REPL_E_CONFIG,
			     "'%s' is nothing to connect to: name the address by which initiators "
			     "reach this machine",
			     value);
	else if (bound && lacks_zone(list->ai_addr))
		rc = err_set(e, REPL_E_CONFIG,
			     "'%s' is link-local: name its interface, as %s%%eth0", value, value);
	freeaddrinfo(list);
	return rc;
}

static int
check_address(const char *value, struct err *e)
{
	return check_place(value, true, e);
}

static int
check_told(const char *value, struct err *e)
{
	return check_place(value, false, e);
}

/* "1.2.3.4:22", "[::1]:22"; port 0 is for any free one. */
static int
check_listen(const char *value, struct err *e)
{
	const char *colon = strrchr(value, ':');
	bool v6 = value[0] == '[';
	size_t len = colon ? (size_t)(colon - value) : 0;
	char host[HOST_MAX];
	unsigned port;

	if (v6 && (len < 2 || value[len - 1] != ']'))
		len = 0;
	else if (v6)
		len -= 2;
	if (len == 0 || len >= sizeof(host))
		goto refuse;
	memcpy(host, value + v6, len);
	host[len] = '\0';
	if (is_address(host, v6 ? AF_INET6 : AF_INET) && !parse_uint(colon + 1, 65535, &port))
		return 0;
refuse:
	return err_set(e, REPL_E_CONFIG,
		       "'%s' is neither ADDRESS:PORT nor [IPV6-ADDRESS]:PORT in numbers", value);
}

static int
check_user(const char *value, struct err *e)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t len = strlen(value);

	if (value[0] != '-' && len <= USER_MAX && strspn(value, allowed) == len)
		return 0;
	return err_set(e, REPL_E_CONFIG, "'%s' is not a user name", value);
}

static int
take_data_ports(void *obj, const char *value, struct err *e)
{
	struct conf *c = obj;
	const char *dash = strchr(value, '-');
	char first_text[8];
	size_t len = dash ? (size_t)(dash - value) : strlen(value);
	unsigned first, last;

	if (len >= sizeof(first_text))
		goto refuse;
	memcpy(first_text, value, len);
	first_text[len] = '\0';
	if (parse_uint(first_text, 65535, &first) || first == 0)
		goto refuse;
	last = first;
	if (dash && parse_uint(dash + 1, 65535, &last))
		goto refuse;
	if (last < first)
		return err_set(e, REPL_E_CONFIG, "'%s' ends before it begins: write it as %u-%u",
			       value, last, first);
	c->data_port_first = first;
	c->data_port_last = last;
	return 0;
refuse:
	return err_set(e, REPL_E_CONFIG, "'%s' is neither FIRST-LAST nor one port, 1 to 65535",
		       value);
}

static int
take_journal_max(void *obj, const char *value, struct err *e)
{
	struct conf *c = obj;
	uint64_t bytes;

	if (strcmp(value, "auto") == 0)
		return 0;
	if (parse_size(value, &bytes) || bytes < WIRE_MSG_SIZE_MAX || bytes > INT64_MAX)
		return err_set(e, REPL_E_CONFIG, "'%s' is neither auto nor a size from 1M on",
			       value);
	c->journal_max = bytes;
	return 0;
}

static int
take_log(void *obj, const char *value, struct err *e)
{
	static const char prefix[] = "file:";
	struct conf *c = obj;
	const char *path = value + strlen(prefix);

	if (strcmp(value, "stderr") == 0) {
		c->log = CONF_LOG_STDERR;
		return 0;
	}
	if (strcmp(value, "syslog") == 0) {
		c->log = CONF_LOG_SYSLOG;
		return 0;
	}
	if (strncmp(value, prefix, strlen(prefix)) != 0)
		return err_set(e, REPL_E_CONFIG, "'%s' is none of stderr, syslog, file:PATH",
			       value);
	if (conffile_check_absolute(path, e))
		return REPL_E_CONFIG;
	c->log_file = strdup(path);
	if (!c->log_file)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	c->log = CONF_LOG_FILE;
	return 0;
}

/* ---- what the admin states ---- */

struct stated_word {
	const char *word;
	int value;
};

static const struct stated_word domain_words[] = {
	{"dmp", PROFILE_DMP},
	{"mhp", PROFILE_MHP},
	{"wsp", PROFILE_WSP},
	{"memory_controller", PROFILE_DMP},
	{"cpu_cache", PROFILE_MHP},
	{"system", PROFILE_WSP},
	{NULL, 0},
};
static const struct stated_word ddio_words[] = {
	{"on", PROFILE_DDIO_ON}, {"off", PROFILE_DDIO_OFF}, {NULL, 0}};
static const struct stated_word rqwrb_words[] = {
	{"dram", PROFILE_RQWRB_DRAM}, {"pm", PROFILE_RQWRB_PM}, {NULL, 0}};
static const struct stated_word provider_words[] = {
	{"software", PROFILE_PROVIDER_SOFTWARE},
	{"ib", PROFILE_PROVIDER_IB},
	{"iwarp", PROFILE_PROVIDER_IWARP},
	{NULL, 0},
};

static const struct stated_word flush_words[] = {
	{"no", PROFILE_FLUSH_NO}, {"yes", PROFILE_FLUSH_YES}, {NULL, 0}};

/* The length of the value without " trust-me" at its end. */
static size_t
stated_len(const char *value, bool *trust)
{
	static const char suffix[] = "trust-me";
	size_t len = strlen(value), cut = strlen(suffix);

	*trust = len > cut && strcmp(value + len - cut, suffix) == 0 &&
		 (value[len - cut - 1] == ' ' || value[len - cut - 1] == '\t');
	if (*trust)
		len -= cut;
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	return len;
}

static int
take_stated(struct conf *c, enum profile_field f, const struct stated_word *words,
	    const char *value, struct err *e)
{
	struct conf_stated stated = {.given = true};
	size_t len = stated_len(value, &stated.trust);
	char list[128] = "probe";

	if (len == strlen("probe") && strncmp(value, "probe", len) == 0) {
		if (stated.trust)
			return err_set(e, REPL_E_CONFIG, "'probe' states nothing to be trusted");
		c->stated[f] = (struct conf_stated){.given = false};
		return 0;
	}
	for (; words->word; words++) {
		size_t used = strlen(list);

		if (strlen(words->word) == len && strncmp(value, words->word, len) == 0) {
			stated.value = words->value;
			c->stated[f] = stated;
			return 0;
		}
		(void)snprintf(list + used, sizeof(list) - used, ", %s", words->word);
	}
	return err_set(e, REPL_E_CONFIG, "'%.80s' is none of %s", value, list);
}

static int
take_domain(void *obj, const char *value, struct err *e)
{
	return take_stated(obj, PROFILE_F_DOMAIN, domain_words, value, e);
}

static int
take_ddio(void *obj, const char *value, struct err *e)
{
	return take_stated(obj, PROFILE_F_DDIO, ddio_words, value, e);
}

static int
take_rqwrb(void *obj, const char *value, struct err *e)
{
	return take_stated(obj, PROFILE_F_RQWRB, rqwrb_words, value, e);
}

static int
take_provider(void *obj, const char *value, struct err *e)
{
	return take_stated(obj, PROFILE_F_PROVIDER, provider_words, value, e);
}

static int
take_flush(void *obj, const char *value, struct err *e)
{
	return take_stated(obj, PROFILE_F_FLUSH, flush_words, value, e);
}

#define TEXT(name_, field, check_)                                                                 \
	{                                                                                          \
		.section = SECTION, .name = name_, .type = CONFFILE_TEXT,                          \
		.offset = offsetof(struct conf, field), .check = check_                            \
	}
#define UINT(name_, field, min_, max_)                                                             \
	{                                                                                          \
		.section = SECTION, .name = name_, .type = CONFFILE_UINT,                          \
		.offset = offsetof(struct conf, field), .min = min_, .max = max_                   \
	}
#define CHOICE(name_, field, choices_)                                                             \
	{                                                                                          \
		.section = SECTION, .name = name_, .type = CONFFILE_CHOICE,                        \
		.offset = offsetof(struct conf, field), .choices = choices_                        \
	}
#define CALL(name_, take_)                                                                         \
	{                                                                                          \
		.section = SECTION, .name = name_, .type = CONFFILE_CALL, .take = take_            \
	}

/* Paths are absolute because a session starts in whatever directory SSH gives it. */
static const struct conffile_key conf_keys[] = {
	TEXT("pool-dir", pool_dir, conffile_check_absolute),
	TEXT("listen", listen, check_listen),
	TEXT("host-key", host_key, conffile_check_absolute),
	TEXT("authorized-keys", authorized_keys, conffile_check_absolute),
	TEXT("user", user, check_user),
	TEXT("data-address", data_address, check_address),
	TEXT("data-told", data_told, check_told),
	CALL("data-ports", take_data_ports),
	UINT("lanes-max", lanes_max, 1, REPL_LANES_MAX),
	UINT("sessions-max", sessions_max, 1, 10000),
	UINT("busy-poll", busy_poll_us, 0, SPIN_US_MAX),
	{
		.section = SECTION,
		.name = "message-size-max",
		.type = CONFFILE_SIZE,
		.offset = offsetof(struct conf, message_size_max),
		.min = WIRE_MSG_SIZE_MIN,
		.max = WIRE_MSG_SIZE_MAX,
	},
	CALL("journal-max", take_journal_max),
	CALL("log", take_log),
	CHOICE("log-level", log_level, level_names),
	UINT("heartbeat", heartbeat_ms, 10, 60000),
	UINT("heartbeat-timeout", heartbeat_timeout_ms, 20, 600000),
	UINT("idle-timeout", idle_timeout_ms, 20, 86400000),
	CALL("persistence-domain", take_domain),
	CALL("ddio", take_ddio),
	CALL("rqwrb", take_rqwrb),
	CALL("provider-class", take_provider),
	CALL("native-flush", take_flush),
};

#define CONF_KEY_COUNT (sizeof(conf_keys) / sizeof(conf_keys[0]))

static int
check_pool_dir(const struct conf *c, struct err *e)
{
	const char *unable;
	struct stat st;

	if (!c->pool_dir)
		return err_set(
			e, REPL_E_CONFIG,
			"%s: key 'pool-dir': missing; name the directory of the pools in [%s]",
			c->path, SECTION);
	if (stat(c->pool_dir, &st)) {
		/* A disk that fails is no mistake in the file: who opens pools there says so. */
		if (err_from_errno(errno) == REPL_E_IO)
			return 0;
		return err_errno(e, REPL_E_CONFIG, errno, "%s: key 'pool-dir': '%s'", c->path,
				 c->pool_dir);
	}
	if (!S_ISDIR(st.st_mode))
		return err_set(e, REPL_E_CONFIG, "%s: key 'pool-dir': '%s' is not a directory",
			       c->path, c->pool_dir);
	unable = filewrite_unable(c->pool_dir);
	if (unable)
		return err_set(e, REPL_E_CONFIG,
			       "%s: key 'pool-dir': '%s' is on %s, which takes no write(2), only "
			       "mappings, and what is kept beside a pool is written: name a "
			       "directory of another file system, such as a tmpfs that is mounted "
			       "with huge=always",
			       c->path, c->pool_dir, unable);
	return 0;
}

static int
check_heartbeat(const struct conf *c, struct err *e)
{
	if (c->heartbeat_ms < c->heartbeat_timeout_ms)
		return 0;
	return err_set(e, REPL_E_CONFIG,
		       "%s: key 'heartbeat': %u ms is not less than heartbeat-timeout, %u ms",
		       c->path, c->heartbeat_ms, c->heartbeat_timeout_ms);
}

static const struct conf conf_defaults = {
	.lanes_max = 16,
	.sessions_max = 64,
	.busy_poll_us = SPIN_NS / 1000,
	.message_size_max = 262144,
	.log = CONF_LOG_STDERR,
	.log_level = CONF_LEVEL_INFO,
	.heartbeat_ms = 1000,
	.heartbeat_timeout_ms = 10000,
	.idle_timeout_ms = 300000,
};

/* The keys, each for itself. */
static int
conf_load(const char *path, struct conf *c, struct err *e)
{
	*c = conf_defaults;
	c->path = strdup(path);
	if (!c->path)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	return conffile_load(path, conf_keys, CONF_KEY_COUNT, c, e);
}

int
conf_read(const char *path, struct conf *c, struct err *e)
{
	int rc;

	if (!path) {
		*c = conf_defaults;
		return REPL_OK;
	}
	rc = conf_load(path, c, e);
	if (!rc)
		rc = check_pool_dir(c, e);
	if (!rc)
		rc = check_heartbeat(c, e);
	if (rc)
		conf_fini(c);
	return rc;
}

int
conf_sessions_max(const char *path, unsigned *sessions_max, struct err *e)
{
	struct conf c;
	int rc = conf_load(path, &c, e);

	*sessions_max = c.sessions_max;
	conf_fini(&c);
	return rc;
}

const char *
conf_file(const struct conf *c)
{
	return c->path ? c->path : "its configuration";
}

void
conf_fini(struct conf *c)
{
	conffile_free(conf_keys, CONF_KEY_COUNT, c);
	free(c->log_file);
	free(c->path);
	c->log_file = NULL;
	c->path = NULL;
}
