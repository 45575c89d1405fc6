/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's key, and ours. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel_ssh.h"
#include "revoked.h"
#include "text.h"

#define WORD_MAX 2048

/* A path in a command that is advised; one that the shell is to expand stays as it is. */
static const char *
channel_word(const char *path, char word[WORD_MAX])
{
	return path[0] != '~' && text_quote(path, word, WORD_MAX) ? word : path;
}

/* "SHA256:..." of the host key; to be freed with ssh_string_free_char(). */
static char *
channel_fingerprint(struct channel *c)
{
	unsigned char *hash = NULL;
	ssh_key key = NULL;
	size_t len = 0;
	char *text = NULL;

	if (ssh_get_server_publickey(c->session, &key) == SSH_OK &&
	    ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &len) == SSH_OK)
		text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, len);
	ssh_clean_pubkey_hash(&hash);
	ssh_key_free(key);
	return text;
}

/* What can't be read for a limit or a fault of this machine's is no doubt about the host. */
static int
channel_file_code(int errnum)
{
	int code = err_from_errno(errnum);

	return code == REPL_E_LIMIT || code == REPL_E_NOMEM || code == REPL_E_IO ? code
										 : REPL_E_AUTH;
}

/* Host keys can't be looked for. */
static int
channel_file_failed(struct channel *c, const char *print, const char *file, int errnum,
		    struct err *e)
{
	int code = channel_file_code(errnum);

	if (code != REPL_E_AUTH)
		return err_errno(e, code, errnum, "%s: the host key can't be looked for: %s",
				 c->name, file);
	return err_errno(e, REPL_E_AUTH, errnum,
			 "%s: the host key %s can't be looked for: %s, which user %u has to read "
			 "at each login",
			 c->name, print, file, (unsigned)geteuid());
}

/* One of the files that the key is looked for in says that it must not be used. */
static int
channel_check_revoked(struct channel *c, struct err *e)
{
	static const enum ssh_options_e files[] = {SSH_OPTIONS_KNOWNHOSTS,
						   SSH_OPTIONS_GLOBAL_KNOWNHOSTS};
	char *base64 = NULL, *path, *print;
	int errnum, rc = REPL_OK;
	ssh_key key = NULL;
	bool found;

	if (ssh_get_server_publickey(c->session, &key) != SSH_OK ||
	    ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK)
		rc = err_set(e, REPL_E_AUTH, "%s: no host key: %s", c->name, channel_cause(c));
	for (unsigned i = 0; !rc && i < sizeof(files) / sizeof(files[0]); i++) {
		path = NULL;
		if (ssh_options_get(c->session, files[i], &path) != SSH_OK || !path)
			continue;
		errnum = revoked_find(path, base64, &found);
		print = errnum || found ? channel_fingerprint(c) : NULL;
		if (errnum)
			rc = channel_file_failed(c, print ? print : "(unknown)", path, errnum, e);
		if (found)
			rc = err_set(e, REPL_E_AUTH,
				     "%s: the host key %s is revoked in %s: somebody else may have "
				     "it; give the host another one",
				     c->name, print ? print : "(unknown)", path);
		ssh_string_free_char(print);
		ssh_string_free_char(path);
	}
	ssh_string_free_char(base64);
	ssh_key_free(key);
	return rc;
}

/* 0, or why it can't be read: the program may have given up rights since it has opened. */
static int
channel_unreadable(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int errnum = fd < 0 ? errno : 0;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		errnum = EISDIR;
	if (fd >= 0)
		(void)close(fd);
	return errnum;
}

/* Not there may be what is right, before the first key is added. */
static int
channel_host_unknown(struct channel *c, const char *print, const char *file, struct err *e)
{
	int errnum = file[0] != '~' ? channel_unreadable(file) : 0;
	unsigned port = SSH_PORT;
	char word[WORD_MAX];

	(void)ssh_options_get_port(c->session, &port);
	if (errnum && errnum != ENOENT)
		return channel_file_failed(c, print, file, errnum, e);
	return err_set(e, REPL_E_AUTH,
		       "%s: the host key %s is not in %s%s: compare the fingerprint with the "
		       "host's and add the key: ssh-keyscan -p %u %s >> %s, or connect once "
		       "with ssh",
		       c->name, print, file, errnum ? ", which does not exist" : "", port, c->host,
		       channel_word(file, word));
}

/* All users' file is looked in as well: it is the one if without it nothing is known. */
static void
channel_changed_in(struct channel *c, char *file, size_t size)
{
	char global[512] = "/etc/ssh/ssh_known_hosts";
	enum ssh_known_hosts_e known;

	channel_get(c, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, global, sizeof(global));
	if (ssh_options_set(c->session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") != SSH_OK)
		return;
	known = ssh_session_is_known_server(c->session);
	if (known != SSH_KNOWN_HOSTS_CHANGED && known != SSH_KNOWN_HOSTS_OTHER)
		(void)snprintf(file, size, "%s", global);
}

static int
channel_judge_host(struct channel *c, struct err *e)
{
	enum ssh_known_hosts_e known = ssh_session_is_known_server(c->session);
	char file[512] = "~/.ssh/known_hosts";
	char bracketed[TARGET_HOST_MAX + 16], word[WORD_MAX];
	unsigned port = SSH_PORT;
	char *print;
	int rc;

	if (known == SSH_KNOWN_HOSTS_OK)
		return channel_check_revoked(c, e);
	(void)ssh_options_get_port(c->session, &port);
	(void)snprintf(bracketed, sizeof(bracketed), "[%s]:%u", c->host, port);
	channel_get(c, SSH_OPTIONS_KNOWNHOSTS, file, sizeof(file));
	if (known == SSH_KNOWN_HOSTS_CHANGED || known == SSH_KNOWN_HOSTS_OTHER)
		channel_changed_in(c, file, sizeof(file));
	print = channel_fingerprint(c);
	/* Short: what a replica's state has room for ends with the whole command. */
	if (known == SSH_KNOWN_HOSTS_CHANGED || known == SSH_KNOWN_HOSTS_OTHER)
		rc = err_set(
			e, REPL_E_AUTH,
			"%s: the host key %s is not the known one: someone may be in between. "
			"If it is the host's own, remove the old one: ssh-keygen -f %s -R '%s'",
			c->name, print ? print : "(unknown)", channel_word(file, word),
			port == SSH_PORT ? c->host : bracketed);
	else if (known == SSH_KNOWN_HOSTS_ERROR)
		rc = err_set(e, REPL_E_AUTH, "%s: host key %s could not be checked against %s: %s",
			     c->name, print ? print : "(unknown)", file, channel_cause(c));
	else
		rc = channel_host_unknown(c, print ? print : "(unknown)", file, e);
	ssh_string_free_char(print);
	return rc;
}

/* A host key and a login that is refused have one status. */
int
channel_check_host(struct channel *c, struct err *e)
{
	int rc = channel_judge_host(c, e);

	return rc == REPL_E_AUTH ? err_because(e, REPL_REASON_HOST_KEY) : rc;
}

/* The outcome of one authentication call, again and again until it is decided. */
static int
channel_auth_step(struct channel *c, int (*step)(struct channel *c, void *arg), void *arg,
		  uint64_t deadline_ns, int *auth, struct err *e)
{
	int rc;

	while ((*auth = step(c, arg)) == SSH_AUTH_AGAIN) {
		/* It has hung up, which libssh tells nowhere else. */
		if (!ssh_is_connected(c->session)) {
			*auth = SSH_AUTH_ERROR;
			break;
		}
		rc = channel_wait(c, deadline_ns, "the answer to the authentication", e);
		if (rc)
			return rc;
	}
	return REPL_OK;
}

static int
channel_auth_none(struct channel *c, void *arg)
{
	(void)arg;
	return ssh_userauth_none(c->session, NULL);
}

static int
channel_auth_auto(struct channel *c, void *arg)
{
	(void)arg;
	c->offered = true;
	return ssh_userauth_publickey_auto(c->session, NULL, NULL);
}

static int
channel_auth_agent(struct channel *c, void *arg)
{
	(void)arg;
	c->offered = true;
	return ssh_userauth_agent(c->session, NULL);
}

static int
channel_auth_key(struct channel *c, void *arg)
{
	return ssh_userauth_publickey(c->session, NULL, arg);
}

/* Nothing was shown to the target that it could have refused. */
static int
channel_key_failed(int rc, struct err *e)
{
	return rc == REPL_E_AUTH ? err_because(e, REPL_REASON_LOCAL) : rc;
}

/* The key with the certificate that lies beside it, as for ssh; *auth is as it was where there is
 * none. */
static int
channel_auth_certificate(struct channel *c, const char *path, uint64_t deadline_ns, int *auth,
			 struct err *e)
{
	char file[PATH_MAX];
	int len = snprintf(file, sizeof(file), "%s-cert.pub", path), rc = REPL_OK;
	ssh_key certificate = NULL, key = NULL;

	if (len >= (int)sizeof(file) || channel_unreadable(file) ||
	    ssh_pki_import_cert_file(file, &certificate) != SSH_OK)
		return REPL_OK;
	if (ssh_pki_import_privkey_file(path, NULL, channel_no_passphrase, c, &key) == SSH_OK &&
	    ssh_pki_copy_cert_to_privkey(certificate, key) == SSH_OK)
		rc = channel_auth_step(c, channel_auth_key, key, deadline_ns, auth, e);
	ssh_key_free(key);
	ssh_key_free(certificate);
	return rc;
}

/* Only the given key; the agent is asked where the file is closed to us. */
static int
channel_auth_identity(struct channel *c, const char *path, uint64_t deadline_ns, int *auth,
		      struct err *e)
{
	int errnum = channel_unreadable(path), rc;
	ssh_key key = NULL;

	if (errnum)
		return channel_key_failed(err_errno(e, channel_file_code(errnum), errnum,
						    "%s: key file '%s'", c->name, path),
					  e);
	if (ssh_pki_import_privkey_file(path, NULL, channel_no_passphrase, c, &key) == SSH_OK) {
		*auth = SSH_AUTH_DENIED;
		rc = channel_auth_certificate(c, path, deadline_ns, auth, e);
		if (!rc && *auth == SSH_AUTH_DENIED)
			rc = channel_auth_step(c, channel_auth_key, key, deadline_ns, auth, e);
		ssh_key_free(key);
		return rc;
	}
	if (!c->passphrase_wanted)
		return channel_key_failed(err_set(e, REPL_E_AUTH,
						  "%s: key file '%s' is no private key", c->name,
						  path),
					  e);
	return channel_auth_step(c, channel_auth_agent, NULL, deadline_ns, auth, e);
}

static int
channel_auth_refused(struct channel *c, const char *identity, int auth, struct err *e)
{
	const char *tried = identity ? identity : "ssh-agent and ssh's key files (~/.ssh/id_*)";
	char word[WORD_MAX];

	if (auth == SSH_AUTH_PARTIAL)
		return err_set(e, REPL_E_AUTH,
			       "%s: user '%s': the server asks for more than a public key; only "
			       "public keys are used here",
			       c->name, c->user);
	/* Its MaxAuthTries: an agent's keys are tried in its order, wanted or not. */
	if (auth == SSH_AUTH_ERROR && c->offered && strstr(channel_cause(c), "Too many auth"))
		return err_set(
			e, REPL_E_AUTH,
			"%s: user '%s': the server ended the login (%s) before all keys were "
			"tried: ssh-agent has many; name a key file without a passphrase with "
			"'identity', or take others out of the agent: ssh-add -d KEY",
			c->name, c->user, channel_cause(c));
	/* It may be on its way down. */
	if (auth == SSH_AUTH_ERROR && !ssh_is_connected(c->session))
		return channel_lost(c, e);
	if (c->passphrase_wanted)
		return err_set(
			e, REPL_E_AUTH,
			"%s: user '%s': tried %s: a key file needs a passphrase and ssh-agent "
			"has no key that is accepted: load it with: ssh-add %s",
			c->name, c->user, tried, identity ? channel_word(identity, word) : "");
	return err_set(e, REPL_E_AUTH,
		       "%s: user '%s' not let in (%s): tried %s: add the public key to the "
		       "authorized keys of '%s' on %s, or name another key with 'identity', or "
		       "another user as USER@HOST",
		       c->name, c->user,
		       auth == SSH_AUTH_DENIED ? "no key accepted" : channel_cause(c), tried,
		       c->user, c->host);
}

int
channel_authenticate(struct channel *c, const char *identity, uint64_t deadline_ns, struct err *e)
{
	int auth = SSH_AUTH_ERROR;
	int rc;

	/*
	 * By the answer to this the server has told which signatures it takes;
	 * without knowing libssh offers SHA-1 for RSA keys, and then none.
	 */
	rc = channel_auth_step(c, channel_auth_none, NULL, deadline_ns, &auth, e);
	if (rc)
		return rc;
	if (auth == SSH_AUTH_DENIED && identity)
		rc = channel_auth_identity(c, identity, deadline_ns, &auth, e);
	else if (auth == SSH_AUTH_DENIED)
		rc = channel_auth_step(c, channel_auth_auto, NULL, deadline_ns, &auth, e);
	if (rc)
		return rc;
	if (auth != SSH_AUTH_SUCCESS)
		return channel_auth_refused(c, identity, auth, e);
	return REPL_OK;
}
