/* SPDX-License-Identifier: BSD-3-Clause */
#include "environment.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static const char *const unused[] = {
	"RPMEM_SSH",
	"RPMEM_ENABLE_SOCKETS",
	"RPMEM_ENABLE_VERBS",
	"RPMEM_WORK_QUEUE_SIZE",
};

void
environment_warning(char out[ENVIRONMENT_WARNING_MAX])
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++) {
		if (secure_getenv(unused[i]))
			at += (size_t)snprintf(out + at, ENVIRONMENT_WARNING_MAX - at, "%s%s",
					       at ? ", " : " (not used here: ", unused[i]);
	}
	if (at)
		(void)snprintf(out + at, ENVIRONMENT_WARNING_MAX - at, ")");
}

static int
set_lanes(struct repl_config *cfg, unsigned lanes)
{
	const char *text = secure_getenv("RPMEM_MAX_NLANES");
	char value[16];
	char *end;

	if (text && *text) {
		unsigned long max = strtoul(text, &end, 10);

		if (*end || max == 0 || text[0] == '-')
			return report_set(EINVAL, "RPMEM_MAX_NLANES='%.32s' is no number above 0",
					  text);
		lanes = max < lanes ? (unsigned)max : lanes;
	}
	if (lanes > REPL_LANES_MAX)
		lanes = REPL_LANES_MAX;
	(void)snprintf(value, sizeof(value), "%u", lanes);
	return repl_config_set(cfg, "lanes", value);
}

/*
 * The commands of RPMEM_CMD, separated by '|', are for the replicas in the order
 * of the pool set file. All that is known here is in which order they are named first.
 */
#define SEEN_MAX 16

static struct {
	pthread_mutex_t lock; /* guards the rest */
	unsigned count;
	char *target[SEEN_MAX];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned
target_index(const char *target)
{
	unsigned i = 0;

	(void)pthread_mutex_lock(&seen.lock);
	while (i < seen.count && strcmp(seen.target[i], target) != 0)
		i++;
	if (i == seen.count && i < SEEN_MAX && (seen.target[i] = strdup(target)) != NULL)
		seen.count++;
	(void)pthread_mutex_unlock(&seen.lock);
	return i;
}

static int
set_command(struct repl_config *cfg, const char *target)
{
	const char *text = secure_getenv("RPMEM_CMD"), *at = text;
	unsigned count = 1, mine;
	char *command;
	int rc;

	if (!text || !*text)
		return 0;
	for (; *at; at++)
		count += *at == '|';
	mine = target_index(target) % count;
	for (at = text; mine > 0; mine--)
		at = strchr(at, '|') + 1;
	command = strndup(at, strcspn(at, "|"));
	if (!command)
		return report_set(ENOMEM, "out of memory");
	rc = *command ? repl_config_set(cfg, "command", command) : 0;
	free(command);
	return rc;
}

/* What was remembered goes with the library. */
__attribute__((destructor)) static void
forget_targets(void)
{
	for (unsigned i = 0; i < seen.count; i++)
		free(seen.target[i]);
	seen.count = 0;
}

struct repl_config *
environment_config(unsigned lanes, const char *target)
{
	struct repl_config *cfg = NULL;
	int rc;

	rc = repl_config_new(&cfg);
	if (!rc)
		rc = repl_config_load(cfg, NULL);
	if (!rc)
		rc = set_lanes(cfg, lanes);
	if (!rc)
		rc = set_command(cfg, target);
	/* -1 is one that has been reported. */
	if (rc && rc != -1)
		(void)report_repl(rc, "librpmem's configuration");
	if (!rc)
		return cfg;
	repl_config_free(cfg);
	return NULL;
}
