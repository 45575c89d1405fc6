/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conffile.h"
#include "entry.h"
#include "plan.h"
#include "spin.h"

#define SECTION        "repl"
#define TIMEOUT_MS_MAX 3600000U
#define RESYNC_MS_MAX  604800000U /* a week */
#define LAG_BYTES_MIN  65536U
#define LAG_BYTES_MAX  (1U << 30)
#define RATE_MIN       65536U
#define PASSWD_MAX     65536U

static const char *const on_loss_names[] = {
	[REPL_ON_LOSS_DEGRADE] = "degrade",
	[REPL_ON_LOSS_FAIL] = "fail",
	[REPL_ON_LOSS_BLOCK] = "block",
	NULL,
};

static const char *const ack_names[] = {
	[ACK_ALL] = "all",
	[ACK_QUORUM] = "quorum",
	[ACK_ANY] = "any",
	NULL,
};

static const char *const on_lag_names[] = {
	[CONFIG_ON_LAG_SLOW] = "slow",
	[CONFIG_ON_LAG_DEGRADE] = "degrade",
	NULL,
};

static const char *const after_crash_names[] = {
	[CONFIG_CRASH_COMPARE] = "compare",
	[CONFIG_CRASH_DIRTY_MAP] = "dirty-map",
	NULL,
};

/* As plan_method_name() has them. */
static const char *const method_names[] = {
	"auto",
	[1 + PLAN_MESSAGE] = "message",
	[1 + PLAN_GENERAL] = "general-purpose",
	[1 + PLAN_APPLIANCE] = "appliance",
	[1 + PLAN_COMPLETION] = "completion",
	[1 + PLAN_WRITE_IMM] = "write-imm",
	[1 + PLAN_WRITE_IMM_READ] = "write-imm-read",
	[1 + PLAN_DEPOSIT] = "deposit",
	[1 + PLAN_DEPOSIT_COMPLETION] = "deposit-completion",
	[1 + PLAN_NATIVE_FLUSH] = "native-flush",
	NULL,
};

static int
check_provider(const char *value, struct err *e)
{
	static const char *const names[] = {"auto", "tcp", "verbs"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(value, names[i]) == 0)
			return 0;
	return err_set(e, REPL_E_CONFIG, "'%.80s' is none of auto, tcp, verbs", value);
}

static int
check_command(const char *value, struct err *e)
{
	if (strlen(value) <= CONFIG_COMMAND_MAX)
		return 0;
	return err_set(e, REPL_E_CONFIG, "has %zu bytes, at most %d are allowed", strlen(value),
		       CONFIG_COMMAND_MAX);
}

static int
check_status_socket(const char *value, struct err *e)
{
	if (strcmp(value, "auto") == 0 || strcmp(value, "none") == 0)
		return 0;
	return conffile_check_absolute(value, e);
}

static int
take_target(void *obj, const char *value, struct err *e)
{
	return config_add_target(obj, value, e);
}

static int
take_async_target(void *obj, const char *value, struct err *e)
{
	return config_add_async_target(obj, value, e);
}

/* "auto", or bytes a second. */
static int
take_rate(void *obj, const char *value, struct err *e)
{
	struct repl_config *c = obj;
	uint64_t rate = 0;

	if (strcmp(value, "auto") != 0 && (parse_size(value, &rate) || rate < RATE_MIN))
		return err_set(e, REPL_E_CONFIG,
			       "'%.80s' is neither auto nor a number of bytes a second of at least "
			       "64K",
			       value);
	c->resync_rate = rate;
	return 0;
}

#define TEXT(name_, field, check_)                                                                 \
	{                                                                                          \
		.section = SECTION, .name = name_, .type = CONFFILE_TEXT,                          \
		.offset = offsetof(struct repl_config, field), .check = check_                     \
	}
#define UINT(name_, field, max_)                                                                   \
	{                                                                                          \
		.section = SECTION, .name = name_, .type = CONFFILE_UINT,                          \
		.offset = offsetof(struct repl_config, field), .min = 1, .max = max_               \
	}

#define CHOICE(name_, field, choices_)                                                             \
	{                                                                                          \
		.section = SECTION, .name = name_, .type = CONFFILE_CHOICE,                        \
		.offset = offsetof(struct repl_config, field), .choices = choices_                 \
	}

static const struct conffile_key config_keys[] = {
	{.section = SECTION, .name = "target", .type = CONFFILE_LIST, .take = take_target},
	{.section = SECTION,
	 .name = "async-target",
	 .type = CONFFILE_LIST,
	 .take = take_async_target},
	TEXT("identity", identity, NULL),
	TEXT("known-hosts", known_hosts, NULL),
	TEXT("provider", provider, check_provider),
	TEXT("command", command, check_command),
	TEXT("pool-file", pool_file, NULL),
	TEXT("status-socket", status_socket, check_status_socket),
	TEXT("metrics-file", metrics_file, conffile_check_absolute),
	UINT("lanes", lanes, REPL_LANES_MAX),
	UINT("connect-timeout", connect_timeout_ms, TIMEOUT_MS_MAX),
	UINT("op-timeout", op_timeout_ms, TIMEOUT_MS_MAX),
	UINT("close-timeout", close_timeout_ms, TIMEOUT_MS_MAX),
	UINT("resync-timeout", resync_timeout_ms, RESYNC_MS_MAX),
	UINT("heartbeat-interval", heartbeat_interval_ms, TIMEOUT_MS_MAX),
	UINT("heartbeat-timeout", heartbeat_timeout_ms, TIMEOUT_MS_MAX),
	UINT("reconnect-min", reconnect_min_ms, TIMEOUT_MS_MAX),
	UINT("reconnect-max", reconnect_max_ms, TIMEOUT_MS_MAX),
	UINT("block-timeout", block_timeout_ms, TIMEOUT_MS_MAX),
	{
		.section = SECTION,
		.name = "busy-poll",
		.type = CONFFILE_UINT,
		.offset = offsetof(struct repl_config, busy_poll_us),
		.max = SPIN_US_MAX,
	},
	{.section = SECTION, .name = "resync-rate", .type = CONFFILE_CALL, .take = take_rate},
	{
		.section = SECTION,
		.name = "on-loss",
		.type = CONFFILE_CHOICE,
		.offset = offsetof(struct repl_config, on_loss),
		.choices = on_loss_names,
	},
	CHOICE("ack", ack, ack_names),
	CHOICE("on-lag", on_lag, on_lag_names),
	{
		.section = SECTION,
		.name = "async-lag-bytes",
		.type = CONFFILE_SIZE,
		.offset = offsetof(struct repl_config, async_lag_bytes),
		.min = LAG_BYTES_MIN,
		.max = LAG_BYTES_MAX,
	},
	UINT("async-lag-time", async_lag_ms, TIMEOUT_MS_MAX),
	{
		.section = SECTION,
		.name = "after-crash",
		.type = CONFFILE_CHOICE,
		.offset = offsetof(struct repl_config, after_crash),
		.choices = after_crash_names,
	},
	{
		.section = SECTION,
		.name = "method",
		.type = CONFFILE_CHOICE,
		.offset = offsetof(struct repl_config, method),
		.choices = method_names,
	},
};

#define CONFIG_KEY_COUNT (sizeof(config_keys) / sizeof(config_keys[0]))

static bool
same_target(const struct target *a, const struct target *b)
{
	return a->port == b->port && strcmp(a->user, b->user) == 0 &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->pool, b->pool) == 0;
}

int
config_add_target(struct repl_config *c, const char *target, struct err *e)
{
	struct target t;
	int rc = target_parse(target, true, &t, e);

	if (rc)
		return rc;
	for (unsigned i = 0; i < c->target_count; i++)
		if (same_target(&c->targets[i], &t))
			return err_set(e, REPL_E_INVAL, "target '%s' is there already", target);
	if (c->target_count == REPL_TARGETS_MAX)
		return err_set(e, REPL_E_INVAL, "target '%s' is one too many, %d are allowed",
			       target, REPL_TARGETS_MAX);
	c->targets[c->target_count++] = t;
	return 0;
}

int
config_add_async_target(struct repl_config *c, const char *target, struct err *e)
{
	int rc = config_add_target(c, target, e);

	if (!rc)
		c->async[c->target_count - 1] = true;
	return rc;
}

bool
config_queued(const struct repl_config *c, unsigned target)
{
	return c->ack != ACK_ALL || c->async[target];
}

unsigned
config_needed(const struct repl_config *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->target_count; i++)
		n += !c->async[i];
	return ack_needed((enum ack_kind)c->ack, n);
}

/* The home directory of a user, "" for who runs this, in a new string; NULL: there is none. */
static char *
home_of(const char *user)
{
	char *buf = malloc(PASSWD_MAX), *home = NULL;
	struct passwd pw, *found = NULL;

	if (buf && *user)
		(void)getpwnam_r(user, &pw, buf, PASSWD_MAX, &found);
	else if (buf)
		(void)getpwuid_r(getuid(), &pw, buf, PASSWD_MAX, &found);
	if (found)
		home = strdup(found->pw_dir);
	/* As libssh does it for who is a number only. */
	else if (!*user && secure_getenv("HOME"))
		home = strdup(secure_getenv("HOME"));
	free(buf);
	return home;
}

/* '~' of the key that we read ourselves, as ssh(1) has it; libssh does so for known-hosts. */
static int
expand_home(const char *path, char **out, struct err *e)
{
	size_t len = strcspn(path, "/");
	char *user = strndup(path + 1, len - 1), *home = user ? home_of(user) : NULL;
	int n;

	free(user);
	if (!home)
		return err_set(e, REPL_E_CONFIG,
			       "key 'identity': '%.80s': no home directory is "
			       "known for that",
			       path);
	n = asprintf(out, "%s%s", home, path + len);
	free(home);
	return n < 0 ? err_set(e, REPL_E_NOMEM, "out of memory") : 0;
}

int
config_set(struct repl_config *c, const char *key, const char *value, struct err *e)
{
	char *whole = NULL;
	int rc = 0;

	if (strcmp(key, "identity") == 0 && value[0] == '~')
		rc = expand_home(value, &whole, e);
	if (!rc)
		rc = conffile_set(config_keys, CONFIG_KEY_COUNT, c, SECTION, key,
				  whole ? whole : value, e);
	free(whole);
	return rc;
}

/* NULL: it has none. */
static const char *
value_of(const struct repl_config *c, const struct conffile_key *k, char *number, size_t size)
{
	const void *field = (const char *)c + k->offset;

	switch (k->type) {
	case CONFFILE_TEXT:
		return *(char *const *)field;
	case CONFFILE_CHOICE:
		return k->choices[*(const int *)field];
	case CONFFILE_UINT:
	case CONFFILE_SIZE:
		(void)snprintf(number, size, "%u", *(const unsigned *)field);
		return number;
	case CONFFILE_CALL: /* resync-rate */
		(void)snprintf(number, size, "%" PRIu64, c->resync_rate);
		return c->resync_rate ? number : "auto";
	default:
		return NULL;
	}
}

void
config_each(const struct repl_config *c,
	    void (*take)(void *arg, const char *key, const char *value), void *arg)
{
	char number[24];

	for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
		const char *value = value_of(c, &config_keys[i], number, sizeof(number));

		if (value)
			take(arg, config_keys[i].name, value);
	}
}

/* Of what a file has said. */
static int
expand_identity(struct repl_config *c, struct err *e)
{
	char *whole = NULL;
	int rc;

	if (!c->identity || c->identity[0] != '~')
		return 0;
	rc = expand_home(c->identity, &whole, e);
	if (rc)
		return rc;
	free(c->identity);
	c->identity = whole;
	return 0;
}

/* *text becomes a copy of itself; false when there is no memory. */
static bool
own_text(char **text)
{
	if (!*text)
		return true;
	*text = strdup(*text);
	return *text != NULL;
}

int
config_copy(const struct repl_config *c, struct repl_config **out, struct err *e)
{
	struct repl_config *n = malloc(sizeof(*n));
	bool whole = n != NULL;

	if (n)
		*n = *c;
	/* Every text is dealt with, also after a failure: none of c's stays in n. */
	for (size_t i = 0; n && i < CONFIG_KEY_COUNT; i++)
		if (config_keys[i].type == CONFFILE_TEXT)
			whole &= own_text((void *)((char *)n + config_keys[i].offset));
	if (!whole) {
		repl_config_free(n);
		return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	*out = n;
	return 0;
}

static void
drop_text(char **text)
{
	free(*text);
	*text = NULL;
}

int
config_copy_for(const struct repl_config *c, const char *target, struct repl_config **out,
		struct err *e)
{
	struct repl_config *n = NULL;
	int rc = config_copy(c, &n, e);

	if (rc)
		return rc;
	n->target_count = 0;
	memset(n->async, 0, sizeof(n->async));
	n->ack = ACK_ALL;
	drop_text(&n->status_socket);
	drop_text(&n->metrics_file);
	drop_text(&n->pool_file);
	rc = config_add_target(n, target, e);
	if (rc)
		repl_config_free(n);
	else
		*out = n;
	return rc;
}

/* What the paths of SSH's files that are whole may begin with. */
#define OF_SSH "/~%"

/* Where the directory is not known any more nothing is changed: opening the file says why. */
static int
path_fix(char **path, const char *whole_by, struct err *e)
{
	char dir[PATH_MAX], *whole;

	if (!*path || strchr(whole_by, (*path)[0]) || !getcwd(dir, sizeof(dir)))
		return 0;
	if (asprintf(&whole, "%s/%s", dir, *path) < 0)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	free(*path);
	*path = whole;
	return 0;
}

int
config_fix_paths(struct repl_config *c, struct err *e)
{
	int rc = path_fix(&c->identity, OF_SSH, e);

	if (!rc)
		rc = path_fix(&c->known_hosts, OF_SSH, e);
	return rc ? rc : path_fix(&c->pool_file, "/", e);
}

/* Read into a copy, so that a refused file changes nothing. */
int
config_load(struct repl_config *c, const char *path, struct err *e)
{
	struct repl_config *n = NULL, old = *c;
	int rc;

	/* A program that gained privileges must not take orders from its caller's environment. */
	if (!path) {
		path = secure_getenv("REPL_CONFIG");
		if (!path || !*path)
			return 0;
	}
	/* Of a variable that is not set, say: without it nothing may be replicated. */
	if (!*path)
		return err_set(e, REPL_E_CONFIG, "no configuration file: its path is empty");
	rc = config_copy(c, &n, e);
	if (rc)
		return rc;
	rc = conffile_load(path, config_keys, CONFIG_KEY_COUNT, n, e);
	if (!rc) {
		rc = expand_identity(n, e);
		if (rc)
			(void)err_prefix(e, "%s", path);
	}
	if (!rc) {
		*c = *n;
		*n = old;
	}
	repl_config_free(n);
	return rc;
}

int
repl_config_new(struct repl_config **cfg)
{
	ENTRY_WHOLE();
	static const struct repl_config defaults = {
		.provider = "auto",
		.command = "repld session",
		.lanes = 4,
		.connect_timeout_ms = 10000,
		.op_timeout_ms = 5000,
		.close_timeout_ms = 5000,
		.resync_timeout_ms = 3600000,
		.heartbeat_interval_ms = 500,
		.heartbeat_timeout_ms = 1500,
		.reconnect_min_ms = 200,
		.reconnect_max_ms = 30000,
		.block_timeout_ms = 60000,
		.busy_poll_us = SPIN_NS / 1000,
		.on_loss = REPL_ON_LOSS_DEGRADE,
		.async_lag_bytes = 64U << 20,
		.async_lag_ms = 5000,
	};
	struct err e = {.code = REPL_OK};

	if (!cfg)
		return config_report_set(REPL_E_INVAL, "cfg is NULL");
	(void)config_copy(&defaults, cfg, &e);
	return config_report(&e);
}

void
repl_config_free(struct repl_config *cfg)
{
	ENTRY_WHOLE();
	if (!cfg)
		return;
	conffile_free(config_keys, CONFIG_KEY_COUNT, cfg);
	free(cfg);
}

int
repl_config_load(struct repl_config *cfg, const char *path)
{
	ENTRY_WHOLE();
	struct err e = {.code = REPL_OK};

	if (!cfg)
		return config_report_set(REPL_E_INVAL, "cfg is NULL");
	(void)config_load(cfg, path, &e);
	return config_report(&e);
}

int
repl_config_add_target(struct repl_config *cfg, const char *target)
{
	ENTRY_WHOLE();
	struct err e = {.code = REPL_OK};

	if (!cfg || !target)
		return config_report_set(REPL_E_INVAL, cfg ? "target is NULL" : "cfg is NULL");
	(void)config_add_target(cfg, target, &e);
	return config_report(&e);
}

int
repl_config_set(struct repl_config *cfg, const char *key, const char *value)
{
	ENTRY_WHOLE();
	struct err e = {.code = REPL_OK};

	if (!cfg)
		return config_report_set(REPL_E_INVAL, "cfg is NULL");
	if (!key || !value)
		return config_report_set(REPL_E_INVAL, key ? "value is NULL" : "key is NULL");
	(void)config_set(cfg, key, value, &e);
	return config_report(&e);
}
