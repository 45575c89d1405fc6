/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a channel takes from ssh's config, and what holds whatever that says.
 */
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "channel_ssh.h"
#include "sshuse.h"

#define PASSWD_MAX 16384

void
channel_mute(int priority, const char *function, const char *buffer, void *arg)
{
	(void)priority;
	(void)function;
	(void)buffer;
	(void)arg;
}

/*
 * A program with other rights than its caller's takes no orders from that: "~" is the caller's, and
 * libssh has commands of ssh's config run by the caller's SHELL.
 */
static bool
channel_distrusts_caller(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* The kernel tells this process nothing of what its children end with. */
static bool
channel_children_are_lost(void)
{
	struct sigaction now;

	return sigaction(SIGCHLD, NULL, &now) == 0 &&
	       (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT));
}

/*
 * A LogLevel in ssh's config takes effect while the rest is being parsed. The
 * callback stays where there was none before: libssh has no way back.
 */
static int
channel_parse_config(struct channel *c, struct err *e)
{
	ssh_logging_callback old = ssh_get_log_callback();
	bool run;
	int rc;

	if (channel_distrusts_caller())
		return REPL_OK;
	(void)ssh_set_log_callback(channel_mute);
	sshuse_config_begin();
	rc = ssh_options_parse_config(c->session, NULL);
	run = sshuse_config_end();
	(void)ssh_set_log_level(SSH_LOG_NOLOG);
	if (old)
		(void)ssh_set_log_callback(old);
	if (rc < 0)
		return err_set(e, REPL_E_CONFIG, "%s: ~/.ssh/config or /etc/ssh/ssh_config: %s",
			       c->host, ssh_get_error(c->session));
	/* To libssh that is one that does not match. */
	if (run && channel_children_are_lost())
		return err_set(e, REPL_E_CONFIG,
			       "%s: ssh's config has a 'Match exec' for it, and this program "
			       "ignores SIGCHLD, so that nobody learns what the command says: have "
			       "the signal at its default, or no 'Match exec' for that host",
			       c->host);
	return REPL_OK;
}

void
channel_get(struct channel *c, enum ssh_options_e option, char *out, size_t size)
{
	char *value = NULL;

	if (ssh_options_get(c->session, option, &value) != SSH_OK || !value)
		return;
	(void)snprintf(out, size, "%s", value);
	ssh_string_free_char(value);
}

/* As in a container that runs by a number. Another error of getpwuid_r(3) does not say so. */
static bool
channel_user_is_number(void)
{
	char *buf = malloc(PASSWD_MAX);
	struct passwd pw, *found = NULL;
	int rc = buf ? getpwuid_r(getuid(), &pw, buf, PASSWD_MAX, &found) : ENOMEM;

	free(buf);
	return !found && (rc == 0 || rc == ENOENT || rc == ESRCH);
}

/* Without an entry libssh takes HOME; where that is not set it says "Out of memory". */
static int
channel_check_home(const struct channel *c, const struct channel_options *o, struct err *e)
{
	bool named = o->target->user[0];

	if (getenv("HOME") || !channel_user_is_number())
		return REPL_OK;
	return err_set(e, REPL_E_CONFIG,
		       "%s: user %u has no entry in passwd: set HOME, the directory of .ssh%s%s",
		       c->host, (unsigned)getuid(), named ? "" : ", and name the user there: user@",
		       named ? "" : o->target->host);
}

static int
channel_check_user(struct channel *c, const struct channel_options *o, struct err *e)
{
	char user[TARGET_USER_MAX] = "";

	channel_get(c, SSH_OPTIONS_USER, user, sizeof(user));
	if (user[0] || !channel_user_is_number())
		return REPL_OK;
	return err_set(e, REPL_E_CONFIG,
		       "%s: user %u has no entry in passwd, so that no name to log in by is known: "
		       "name the user there, user@%s, or have 'User' in ssh's config",
		       c->host, (unsigned)getuid(), o->target->host);
}

int
channel_set(struct channel *c, enum ssh_options_e option, const void *value, struct err *e)
{
	if (ssh_options_set(c->session, option, value) < 0)
		return err_set(e, REPL_E_CONFIG, "%s: SSH option refused: %s", c->host,
			       ssh_get_error(c->session));
	return REPL_OK;
}

/* What must hold whatever ssh's config says; the config overwrites, so this comes after it. */
static int
channel_set_explicit(struct channel *c, const struct channel_options *o, struct err *e)
{
	const int strict = 1, quiet = SSH_LOG_NOLOG, keys = 1, parse = 0;
	int rc = channel_set(c, SSH_OPTIONS_STRICTHOSTKEYCHECK, &strict, e);

	if (!rc)
		rc = channel_set(c, SSH_OPTIONS_LOG_VERBOSITY, &quiet, e);
	if (!rc)
		rc = channel_set(c, SSH_OPTIONS_PUBKEY_AUTH, &keys, e);
	if (!rc)
		rc = channel_set(c, SSH_OPTIONS_PROCESS_CONFIG, &parse, e);
	if (!rc && o->target->user[0])
		rc = channel_set(c, SSH_OPTIONS_USER, o->target->user, e);
	if (!rc && o->target->port)
		rc = channel_set(c, SSH_OPTIONS_PORT, &o->target->port, e);
	if (!rc && o->known_hosts)
		rc = channel_set(c, SSH_OPTIONS_KNOWNHOSTS, o->known_hosts, e);
	/* No socket: libssh would take SSH_AUTH_SOCK. */
	if (!rc && channel_distrusts_caller())
		rc = channel_set(c, SSH_OPTIONS_IDENTITY_AGENT, "/dev/null", e);
	return rc;
}

int
channel_set_options(struct channel *c, const struct channel_options *o, struct err *e)
{
	unsigned port = SSH_PORT;
	char host[TARGET_HOST_MAX] = "";
	int rc = 0;

	(void)snprintf(c->host, sizeof(c->host), "%s", o->target->host);
	(void)snprintf(c->command, sizeof(c->command), "%s", o->command);
	/* It says nothing of what it dislikes; ssh takes an alias with an underscore. */
	if (ssh_options_set(c->session, SSH_OPTIONS_HOST, o->target->host) < 0) {
		if (strchr(c->host, '%'))
			return err_set(e, REPL_E_CONFIG,
				       "%s: behind the '%%' has to be the name of a network "
				       "interface that this machine has",
				       c->host);
		return err_set(
			e, REPL_E_CONFIG,
			"%s: libssh takes no such host name, only letters, digits and '-', at "
			"most 63 between two dots: use another alias, or the address",
			c->host);
	}
	rc = channel_check_home(c, o, e);
	/* Match rules of the config look at the user. */
	if (!rc && o->target->user[0])
		rc = channel_set(c, SSH_OPTIONS_USER, o->target->user, e);
	if (rc)
		return rc;
	rc = channel_parse_config(c, e);
	if (!rc)
		rc = channel_set_explicit(c, o, e);
	if (!rc)
		rc = channel_check_user(c, o, e);
	if (rc)
		return rc;
	(void)ssh_options_get_port(c->session, &port);
	channel_get(c, SSH_OPTIONS_HOST, host, sizeof(host));
	if (host[0])
		memcpy(c->host, host, sizeof(c->host));
	(void)target_address(c->host, port, c->name);
	return REPL_OK;
}
