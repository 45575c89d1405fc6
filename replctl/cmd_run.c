/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl run --replica TARGET/pool --pool FILE -- PROGRAM ARGS... - run an
 * unmodified program of PMDK's with its pools replicated, by the library
 * librepl-preload.so. This one checks what can be checked before the program
 * runs, and becomes it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "commands.h"
#include "out.h"

#define PRELOAD_NAME "librepl-preload.so"
#define HEADERS_MAX  64

/* A text that grows; an error sticks. */
struct text {
	char *s;
	bool failed;
};

static void
text_add(struct text *t, const char *a, const char *b, const char *c)
{
	char *s = NULL;

	if (t->failed || asprintf(&s, "%s%s%s%s", t->s ? t->s : "", a, b, c) < 0) {
		t->failed = true;
		return;
	}
	free(t->s);
	t->s = s;
}

/* ---- pools and replicas ---- */

/* What the file's name, which the program may be about to make, leads to by now. */
static int
pool_resolve(const char *file, char path[PATH_MAX], struct err *e)
{
	char dir[PATH_MAX], name[PATH_MAX], real[PATH_MAX];
	struct stat st;

	if (realpath(file, path)) {
		if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
			return err_set(e, REPL_E_INVAL, "pool '%s' is not a regular file", file);
		return 0;
	}
	if (strlen(file) >= PATH_MAX)
		return err_set(e, REPL_E_INVAL, "pool '%s': the name is too long", file);
	(void)snprintf(dir, sizeof(dir), "%s", file);
	(void)snprintf(name, sizeof(name), "%s", file);
	if (errno != ENOENT || !realpath(dirname(dir), real))
		return err_errno(e, err_from_errno(errno), errno, "pool '%s'", file);
	if (snprintf(path, PATH_MAX, "%s/%s", real, basename(name)) >= PATH_MAX)
		return err_set(e, REPL_E_INVAL, "pool '%s': the name is too long", file);
	return 0;
}

/* A name by which another pool is known already becomes that one. */
static void
pool_merge(const struct text *lines, const char *real, char path[PATH_MAX])
{
	char before[PATH_MAX], leads[PATH_MAX];
	struct err any;

	err_clear(&any);
	for (const char *at = lines->s; at && *at; at = strchr(at, '\n') + 1) {
		(void)snprintf(before, sizeof(before), "%.*s", (int)strcspn(at, "\t"), at);
		if (pool_resolve(before, leads, &any) == 0 && strcmp(leads, real) == 0)
			(void)snprintf(path, PATH_MAX, "%s", before);
	}
}

/*
 * The name that the pool has wherever the program goes. Its links stay what they are: the program
 * may give them, as any name, to another file, which is the pool's then.
 */
static int
pool_path(const char *file, const struct text *lines, char path[PATH_MAX], struct err *e)
{
	char real[PATH_MAX], dir[PATH_MAX] = "";
	size_t len = strlen(file);
	int rc = pool_resolve(file, real, e);

	if (rc)
		return rc;
	if (file[0] != '/' && !getcwd(dir, sizeof(dir)))
		return err_errno(e, err_from_errno(errno), errno, "pool '%s'", file);
	while (len > 1 && file[len - 1] == '/')
		len--;
	if (snprintf(path, PATH_MAX, "%s%s%.*s", dir, file[0] == '/' ? "" : "/", (int)len, file) >=
	    PATH_MAX)
		return err_set(e, REPL_E_INVAL, "pool '%s': the name is too long", file);
	pool_merge(lines, real, path);
	return 0;
}

static int
check_line(const char *text, struct err *e)
{
	if (!strpbrk(text, "\t\n"))
		return 0;
	return err_set(e, REPL_E_INVAL, "'%s' has a tab or an end of line", text);
}

/* One that is named twice can be nothing but the replica of the first. */
static int
check_new(const struct text *lines, const char *replica, struct err *e)
{
	size_t len = strlen(replica);
	const char *at = lines->s;

	while (at && (at = strchr(at, '\t'))) {
		if (strncmp(++at, replica, len) == 0 && at[len] == '\n')
			return err_set(e, REPL_E_INVAL, "replica '%s' is named twice", replica);
	}
	return 0;
}

/* A line for each replica of one pool, which are the options from first up to end. */
static int
add_pool(struct ctl *c, const char *file, unsigned first, unsigned end, struct text *lines)
{
	const struct ctl_run *run = &c->options.run;
	char path[PATH_MAX], *quoted;
	struct target t;
	unsigned count = 0;
	int rc = pool_path(file, lines, path, &c->err);

	if (!rc)
		rc = check_line(path, &c->err);
	for (unsigned i = first; !rc && i < end; i++) {
		if (run->option[i].pool)
			continue;
		rc = target_parse(run->option[i].text, true, &t, &c->err);
		if (!rc)
			rc = check_line(run->option[i].text, &c->err);
		if (!rc)
			rc = check_new(lines, run->option[i].text, &c->err);
		text_add(lines, path, "\t", run->option[i].text);
		text_add(lines, "\n", "", "");
		count++;
	}
	if (!rc && count > REPL_TARGETS_MAX)
		rc = err_set(&c->err, REPL_E_INVAL, "pool '%s' has %u replicas, %d are allowed",
			     file, count, REPL_TARGETS_MAX);
	if (rc || count > 0)
		return rc;
	quoted = out_quote(file);
	ctl_next(c, "replctl run --replica TARGET/pool --pool %s -- PROGRAM",
		 quoted ? quoted : "FILE");
	free(quoted);
	return err_set(&c->err, REPL_E_INVAL, "pool '%s' has no replica", file);
}

/* Replicas belong to the pool that follows them, the last ones to the last pool. */
static int
add_pools(struct ctl *c, struct text *lines)
{
	const struct ctl_run *run = &c->options.run;
	unsigned first = 0, last = run->count;
	int rc = 0;

	for (unsigned i = 0; i < run->count; i++) {
		if (run->option[i].pool)
			last = i;
	}
	if (last == run->count)
		return err_set(&c->err, REPL_E_INVAL, "no --pool is given: nothing to replicate");
	for (unsigned i = 0; !rc && i <= last; i++) {
		if (!run->option[i].pool)
			continue;
		rc = add_pool(c, run->option[i].text, first, i == last ? run->count : i, lines);
		first = i + 1;
	}
	return rc;
}

struct settings {
	struct text *lines;
	struct err *e;
	int rc;
};

static void
take_setting(void *arg, const char *key, const char *value)
{
	struct settings *s = arg;

	if (!s->rc && strchr(value, '\n'))
		s->rc = err_set(s->e, REPL_E_INVAL, "%s '%s' has an end of line", key, value);
	text_add(s->lines, key, "\t", value);
	text_add(s->lines, "\n", "", "");
}

static int
set_one(struct ctl *c, const char *set, struct text *lines)
{
	char *key = strdup(set), *value = key ? strchr(key, '=') : NULL;
	int rc;

	if (!value) {
		rc = err_set(&c->err, REPL_E_INVAL, "--set '%s' is not KEY=VALUE", set);
	} else {
		*value++ = '\0';
		rc = config_set(c->cfg, key, value, &c->err);
		if (!rc && (strcmp(key, "target") == 0 || strcmp(key, "async-target") == 0))
			take_setting(&(struct settings){.lines = lines, .e = &c->err}, key, value);
		if (!rc && strcmp(key, "after-crash") == 0 && strcmp(value, "compare") != 0) {
			rc = err_set(&c->err, REPL_E_INVAL,
				     "--set '%s': an unmodified program changes its file in ways "
				     "that no map knows of: its pool is compared each time that it "
				     "is opened",
				     set);
			ctl_next(c, "leave it out");
		}
	}
	free(key);
	return rc;
}

/*
 * What this run was told and what its file says, for the library: by the time that it opens a pool
 * the program may be elsewhere, and the file another one, with targets that are not for this pool.
 */
static int
add_settings(struct ctl *c, struct text *lines)
{
	const struct ctl_options *o = &c->options;
	const char *const files[] = {o->identity ? c->cfg->identity : NULL, o->known_hosts};
	struct settings all = {.lines = lines, .e = &c->err};
	int rc = 0;

	for (unsigned i = 0; i < 2; i++) {
		/* But for what SSH expands. */
		if (files[i] && files[i][0] != '~' && files[i][0] != '%' &&
		    access(files[i], F_OK) != 0)
			return err_errno(&c->err, err_from_errno(errno), errno, "%s", files[i]);
	}
	for (unsigned i = 0; !rc && i < o->run.set_count; i++)
		rc = set_one(c, o->run.set[i], lines);
	if (!rc)
		rc = config_fix_paths(c->cfg, &c->err);
	if (!rc)
		config_each(c->cfg, take_setting, &all);
	return rc ? rc : all.rc;
}

/* Lines of add_pool(). */
static bool
is_one_pool(const char *lines)
{
	size_t len = strcspn(lines, "\t") + 1;

	for (const char *at = lines; *at; at = strchr(at, '\n') + 1)
		if (strncmp(at, lines, len) != 0)
			return false;
	return true;
}

/* What is for one pool would be every pool's: of one file, one after the other. */
static int
check_shared(struct ctl *c, const char *lines)
{
	const struct repl_config *cfg = c->cfg;
	const char *socket = cfg->status_socket;
	const char *key = cfg->target_count > 0        ? cfg->async[0] ? "async-target" : "target"
			  : cfg->pool_file             ? "pool-file"
			  : cfg->metrics_file          ? "metrics-file"
			  : socket && socket[0] == '/' ? "status-socket"
						       : NULL;

	if (!key || is_one_pool(lines))
		return 0;
	ctl_next(c, "leave it out, or run the program with one pool");
	return err_set(&c->err, REPL_E_CONFIG,
		       "key '%s' is for one pool, and several are named: it would be that of each",
		       key);
}

/* The library would leave one out that is there already, or one too many, and the program run on.
 */
static int
check_targets(struct ctl *c, const char *lines)
{
	char text[TARGET_TEXT_MAX];
	int rc = 0;

	for (const char *at = lines; !rc && is_one_pool(lines) && *at; at = strchr(at, '\n') + 1) {
		at = strchr(at, '\t') + 1;
		(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\n"), at);
		rc = config_add_target(c->cfg, text, &c->err);
	}
	if (rc)
		ctl_next(c, "leave it out");
	return rc;
}

/* ---- the program ---- */

static int
find_program(const char *name, char path[PATH_MAX], struct err *e)
{
	const char *dirs = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX
			       ? 0
			       : err_set(e, REPL_E_INVAL, "the program's name is too long");
	for (const char *p = dirs; p && *p;) {
		size_t len = strcspn(p, ":");

		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)len, p, name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return 0;
		p += len + (p[len] == ':');
	}
	return err_set(e, REPL_E_NOT_FOUND, "there is no program '%s' in PATH", name);
}

/* Whether an ELF program names a dynamic linker; true for what is not ELF, as a script. */
static bool
is_dynamic(int fd)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    h.e_phentsize != sizeof(p))
		return true;
	for (unsigned i = 0; i < h.e_phnum && i < HEADERS_MAX; i++) {
		off_t at = (off_t)(h.e_phoff + i * sizeof(p));

		if (at < 0 || pread(fd, &p, sizeof(p), at) != (ssize_t)sizeof(p))
			return true;
		if (p.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static bool
is_other_class(int fd)
{
	unsigned char ident[EI_NIDENT];

	return pread(fd, ident, sizeof(ident), 0) == (ssize_t)sizeof(ident) &&
	       memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] != ELFCLASS64;
}

static int
check_program(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char caps[64];
	int rc = 0;

	if (fd < 0 && errno == EACCES)
		return 0; /* may still be run */
	if (fd < 0 || fstat(fd, &st))
		rc = err_errno(e, err_from_errno(errno), errno, "program '%s'", path);
	else if ((st.st_mode & (S_ISUID | S_ISGID)) ||
		 fgetxattr(fd, "security.capability", caps, sizeof(caps)) > 0)
		rc = err_set(e, REPL_E_REFUSED,
			     "%s runs with another user's rights or with capabilities: the system "
			     "loads no library for it that its caller names, so its pools can't be "
			     "replicated this way",
			     path);
	else if (is_other_class(fd))
		rc = err_set(
			e, REPL_E_REFUSED,
			"%s is a program of 32 bits: the library that follows what it does has "
			"64",
			path);
	else if (!is_dynamic(fd))
		rc = err_set(e, REPL_E_REFUSED,
			     "%s is statically linked: no library can follow what it does; link it "
			     "dynamically, or have it call librepl",
			     path);
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

/* Beside this program, as in a build, or where it is installed, seen from this program. */
static int
find_preload(char path[PATH_MAX], struct err *e)
{
	static const char *const places[] = {"", REPL_LIBDIR "/"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	for (unsigned i = 0; i < 2; i++) {
		int dir = (int)(strrchr(self, '/') ? strrchr(self, '/') - self + 1 : 0);

		if (snprintf(path, PATH_MAX, "%.*s%s%s", dir, self, places[i], PRELOAD_NAME) <
			    PATH_MAX &&
		    access(path, R_OK) == 0) {
			/* The dynamic linker would leave it out, and the program run all the same.
			 */
			if (strpbrk(path, " :"))
				return err_set(
					e, REPL_E_REFUSED,
					"LD_PRELOAD can't name '%s' with its space or colon: "
					"install it elsewhere",
					path);
			return 0;
		}
	}
	return err_set(e, REPL_E_NOT_FOUND, "%s is not there: install the library's package", path);
}

/* ---- the command ---- */

static int
run_environment(struct ctl *c)
{
	struct text pools = {0}, settings = {0}, preload = {0};
	const char *others = getenv("LD_PRELOAD"), *config = getenv("REPL_CONFIG");
	char path[PATH_MAX], file[PATH_MAX];
	int rc = add_pools(c, &pools);

	if (!rc)
		rc = add_settings(c, &settings);
	if (!rc && !pools.failed)
		rc = check_shared(c, pools.s);
	if (!rc && !pools.failed)
		rc = check_targets(c, pools.s);
	if (!rc)
		rc = find_preload(path, &c->err);
	if (c->options.config)
		config = c->options.config;
	if (!rc && config && *config && (!realpath(config, file) || setenv("REPL_CONFIG", file, 1)))
		rc = err_errno(&c->err, err_from_errno(errno), errno, "%s", config);
	if (!rc) {
		text_add(&preload, path, others && *others ? ":" : "", others ? others : "");
		if (pools.failed || settings.failed || preload.failed ||
		    setenv("REPL_PRELOAD_POOLS", pools.s, 1) ||
		    setenv("REPL_PRELOAD_SET", settings.s ? settings.s : "", 1) ||
		    setenv("LD_PRELOAD", preload.s, 1))
			rc = err_set(&c->err, REPL_E_NOMEM, "out of memory");
	}
	free(pools.s);
	free(settings.s);
	free(preload.s);
	return rc;
}

int
cmd_run(struct ctl *c, char **args)
{
	char path[PATH_MAX];
	int rc = find_program(args[0], path, &c->err);

	if (!rc)
		rc = check_program(path, &c->err);
	if (!rc && c->cfg->target_count > 0) {
		ctl_next(c, "name another file with --config, without a key 'target'");
		rc = err_set(&c->err, REPL_E_CONFIG,
			     "the configuration names targets, which would be replicas of every "
			     "pool: replctl run takes them from --replica only");
	}
	if (!rc)
		rc = run_environment(c);
	if (rc)
		return rc;
	(void)fflush(NULL);
	(void)execv(path, args);
	return err_errno(&c->err, err_from_errno(errno), errno, "running %s", path);
}
