/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl - the admin tool: options and the table of commands. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "control.h"
#include "fabric.h"
#include "interrupt.h"
#include "out.h"

enum {
	OPT_SIZE = 1U,
	OPT_FROM = 2U,
	OPT_FORCE = 4U,
	OPT_DRY_RUN = 8U,
	OPT_QUICK = 16U,
	OPT_SECONDS = 32U,
	OPT_COUNT = 64U,
	OPT_PLOT = 128U,
	OPT_TAIL = 256U,
	OPT_METHOD = 512U,
	OPT_PLAN = 1024U, /* those of a command without target: ctl_plan_option, --all, --csv */
	OPT_SPARSE = 2048U,
	OPT_RUN = 4096U, /* --replica, --pool, --set */
	OPT_WATCH = 65536U,
	OPT_MORE = 262144U,  /* no option: a second argument is allowed */
	OPT_WAIT = 131072U,  /* --for, --timeout */
	OPT_SEED = 1048576U, /* of a command that needs no configuration */
	OPT_DISCARD = 2097152U,
};

#define ANY_COUNT   (-1)
#define TEXT_COLUMN 32 /* of what commands do, in their list */
#define HELP_WIDTH  79

struct command {
	const char *name;
	const char *args;
	const char *help;
	int (*run)(struct ctl *c, char **args);
	int arg_count;    /* or ANY_COUNT: one or more */
	unsigned options; /* OPT_* that it takes beside the common ones */
};

static const struct command commands[] = {
	{"create", "TARGET/pool --size N | --from FILE", "make a pool of zeros, or of a file",
	 cmd_create, 1, OPT_SIZE | OPT_FROM | OPT_SPARSE},
	{"grow", "TARGET/pool --size N", "grow a pool that nobody writes to", cmd_grow, 1,
	 OPT_SIZE},
	{"list", "TARGET", "list the pools of a target", cmd_list, 1, 0},
	{"info", "TARGET/pool", "show one pool", cmd_info, 1, 0},
	{"newest", "TARGET/pool...", "tell which replica has all, of a lost primary's", cmd_newest,
	 ANY_COUNT, 0},
	{"remove", "TARGET/pool [--dry-run] [--force]", "remove a pool and its data", cmd_remove, 1,
	 OPT_FORCE | OPT_DRY_RUN},
	{"promote", "TARGET/pool [--force]", "make a replica the primary, in place", cmd_promote, 1,
	 OPT_FORCE},
	{"demote", "TARGET/pool", "make a primary a replica again", cmd_demote, 1, 0},
	{"plan", "[--domain D ...] | --all [--csv]", "explain what makes an update durable",
	 cmd_plan, 0, OPT_PLAN},
	{"probe", "TARGET[/pool]", "show what is known of a target", cmd_probe, 1, 0},
	{"sync", "FILE TARGET/pool [--dry-run] [--force]", "push what differs to a replica",
	 cmd_sync, 2, OPT_FORCE | OPT_DRY_RUN},
	{"restore", "TARGET/pool FILE [--dry-run] [--force]", "pull a replica into a file",
	 cmd_restore, 2, OPT_FORCE | OPT_DRY_RUN},
	{"resolve", "--discard local|replica FILE TARGET/pool",
	 "give one side up where both went on", cmd_resolve, 2,
	 OPT_DISCARD | OPT_FORCE | OPT_DRY_RUN},
	{"verify", "FILE TARGET/pool", "list the ranges that differ", cmd_verify, 2, 0},
	{"run", "--replica TARGET/pool --pool FILE -- PROGRAM ARG...",
	 "run a program of PMDK's, its pools replicated", cmd_run, ANY_COUNT, OPT_RUN},
	{"selftest", "[--seed N] [--seconds N]", "lose simulated machines, check what holds",
	 cmd_selftest, 0, OPT_SEED | OPT_SECONDS},
	{"status", "FILE | TARGET [--watch]", "show replicas, or sessions and pools", cmd_status, 1,
	 OPT_WATCH},
	{"events", "FILE | TARGET", "show each change as it comes", cmd_events, 1, 0},
	{"why", "FILE | TARGET/pool", "tell the reason for a state, and what helps", cmd_why, 1, 0},
	{"pause", "FILE [TARGET/pool] [--force]", "go on without a replica until it is resumed",
	 cmd_pause, 1, OPT_MORE | OPT_FORCE},
	{"resume", "FILE [TARGET/pool]", "get it back, or try at once", cmd_resume, 1, OPT_MORE},
	{"wait", "FILE [--for STATE] [--timeout S]", "return when all replicas are up to date",
	 cmd_wait, 1, OPT_WAIT},
	{"metrics", "FILE", "print the metrics for Prometheus", cmd_metrics, 1, 0},
	{"bench", "TARGET [--quick] [--seconds N] [--size N]", "measure, beside bare TCP",
	 cmd_bench, 1, OPT_QUICK | OPT_SECONDS | OPT_SIZE},
	{"bench remotelog", "TARGET [--count N] [--plot FILE]", "append to a log by each method",
	 cmd_remotelog, 1, OPT_COUNT | OPT_PLOT | OPT_TAIL | OPT_METHOD | OPT_SIZE},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

enum {
	LONG_KNOWN_HOSTS = 256,
	LONG_FROM,
	LONG_SPARSE,
	LONG_JSON,
	LONG_QUICK,
	LONG_SECONDS,
	LONG_COUNT,
	LONG_PLOT,
	LONG_TAIL,
	LONG_METHOD,
	LONG_WATCH,
	LONG_FOR,
	LONG_TIMEOUT,
	LONG_SEED,
	LONG_DISCARD,
	LONG_ALL,
	LONG_CSV,
	LONG_REPLICA,
	LONG_POOL,
	LONG_SET,
	LONG_PLAN, /* and those of ctl_plan_option: nothing behind it */
};

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"identity", required_argument, NULL, 'i'},
	{"known-hosts", required_argument, NULL, LONG_KNOWN_HOSTS},
	{"json", no_argument, NULL, LONG_JSON},
	{"force", no_argument, NULL, 'f'},
	{"dry-run", no_argument, NULL, 'n'},
	{"size", required_argument, NULL, 's'},
	{"from", required_argument, NULL, LONG_FROM},
	{"sparse", no_argument, NULL, LONG_SPARSE},
	{"quick", no_argument, NULL, LONG_QUICK},
	{"seconds", required_argument, NULL, LONG_SECONDS},
	{"count", required_argument, NULL, LONG_COUNT},
	{"plot", required_argument, NULL, LONG_PLOT},
	{"tail", required_argument, NULL, LONG_TAIL},
	{"method", required_argument, NULL, LONG_METHOD},
	{"watch", no_argument, NULL, LONG_WATCH},
	{"for", required_argument, NULL, LONG_FOR},
	{"timeout", required_argument, NULL, LONG_TIMEOUT},
	{"seed", required_argument, NULL, LONG_SEED},
	{"domain", required_argument, NULL, LONG_PLAN + CTL_PLAN_DOMAIN},
	{"ddio", required_argument, NULL, LONG_PLAN + CTL_PLAN_DDIO},
	{"rqwrb", required_argument, NULL, LONG_PLAN + CTL_PLAN_RQWRB},
	{"op", required_argument, NULL, LONG_PLAN + CTL_PLAN_OP},
	{"update", required_argument, NULL, LONG_PLAN + CTL_PLAN_UPDATE},
	{"transport", required_argument, NULL, LONG_PLAN + CTL_PLAN_TRANSPORT},
	{"discard", required_argument, NULL, LONG_DISCARD},
	{"all", no_argument, NULL, LONG_ALL},
	{"csv", no_argument, NULL, LONG_CSV},
	{"replica", required_argument, NULL, LONG_REPLICA},
	{"pool", required_argument, NULL, LONG_POOL},
	{"set", required_argument, NULL, LONG_SET},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static const struct command *
command_named(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* The command that the first two words name, else the one that the first names. */
static const struct command *
command_find(char **args, int count, int *words)
{
	const struct command *command = NULL;
	char two[64];

	*words = 2;
	if (count > 1 && snprintf(two, sizeof(two), "%s %s", args[0], args[1]) < (int)sizeof(two))
		command = command_named(two);
	if (command)
		return command;
	*words = 1;
	return command_named(args[0]);
}

/* ---- help ---- */

/* What options say of themselves: one without a bit is for all commands. */
static const struct option_help {
	unsigned bit;
	const char *option;
	const char *help;
} option_helps[] = {
	{0, "-c, --config FILE", "instead of the file that REPL_CONFIG names"},
	{0, "-i, --identity FILE", "private key"},
	{0, "    --known-hosts FILE", "host keys"},
	{0, "    --json", "answer and errors as JSON on standard output"},
	{OPT_SIZE, "-s, --size N", "bytes, or K, M, G, T"},
	{OPT_FROM, "    --from FILE", "the size of this file, then its data"},
	{OPT_SPARSE, "    --sparse", "space is taken as it is written"},
	{OPT_QUICK, "    --quick", "fewer sizes and rounds"},
	{OPT_SECONDS, "    --seconds N", "how long to work, about"},
	{OPT_COUNT, "    --count N", "appends by each method; 10000000"},
	{OPT_PLOT, "    --plot FILE", "draw bars, as SVG"},
	{OPT_TAIL, "    --tail KIND", "only that kind of update: singleton, compound"},
	{OPT_METHOD, "    --method NAME", "only that method"},
	{OPT_SEED, "    --seed N", "one run, this one; with --seconds the first of many"},
	{OPT_PLAN, "    --domain D", "dmp, mhp or wsp"},
	{OPT_PLAN, "    --ddio D", "on or off"},
	{OPT_PLAN, "    --rqwrb R", "dram or pm"},
	{OPT_PLAN, "    --op O", "write, writeimm or send"},
	{OPT_PLAN, "    --update U", "singleton or compound"},
	{OPT_PLAN, "    --transport T", "ib or iwarp"},
	{OPT_PLAN, "    --all", "every row"},
	{OPT_PLAN, "    --csv", "rows as comma-separated values"},
	{OPT_RUN, "    --replica TARGET/pool", "of the pool that follows, or of the last one"},
	{OPT_RUN, "    --pool FILE", "a pool that the program opens or makes"},
	{OPT_RUN, "    --set KEY=VALUE", "a key of repl.conf(5), e.g. on-loss=fail"},
	{OPT_WATCH, "    --watch", "again each second, until Ctrl-C"},
	{OPT_WAIT, "    --for STATE", "up-to-date unless given; any that status shows"},
	{OPT_WAIT, "    --timeout S", "seconds, then exit status 9; 60 unless given"},
	{OPT_DISCARD, "    --discard SIDE", "local (FILE's data) or replica"},
	{OPT_DRY_RUN, "-n, --dry-run", "say what would be done, change nothing"},
	{OPT_FORCE, "-f, --force", "overwrite, destroy, do what is refused else"},
};

#define OPTION_HELPS (sizeof(option_helps) / sizeof(option_helps[0]))

static void
help_options(unsigned options)
{
	(void)puts("\nOptions, before or after the command:");
	for (size_t i = 0; i < OPTION_HELPS; i++) {
		const struct option_help *o = &option_helps[i];

		if (!o->bit || (options & o->bit))
			(void)printf("  %-25s %s\n", o->option, o->help);
	}
}

/* One line, or two where the text would not stand in its column or leave the screen. */
static void
help_line(const char *name, const char *args, const char *text)
{
	int column = printf("  %s %s", name, args);

	if (column + 2 > TEXT_COLUMN || TEXT_COLUMN + strlen(text) > HELP_WIDTH) {
		(void)putchar('\n');
		column = 0;
	}
	if (TEXT_COLUMN + strlen(text) > HELP_WIDTH)
		(void)printf("      %s\n", text);
	else
		(void)printf("%*s%s\n", TEXT_COLUMN - column, "", text);
}

static void
help_all(void)
{
	(void)puts("usage: replctl COMMAND ...\n\n"
		   "TARGET is [user@]host[:ssh-port].\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		help_line(commands[i].name, commands[i].args, commands[i].help);
	help_line("help", "[COMMAND]", "show this, or one command and its options");
	help_options(OPT_FORCE | OPT_DRY_RUN);
	(void)printf("  %-25s %s\n", "-V, --version", "print the version");
	(void)puts("\nExit status: 0 ok, 1 failed, 2 usage, 3 not found, 4 refused for safety,\n"
		   "5 degraded, 6 diverged, 7 unreachable, 8 auth, 9 timed out, 10 config.");
}

static void
help_one(const struct command *command)
{
	(void)printf("usage: replctl %s %s\n\n%s\n", command->name, command->args, command->help);
	help_options(command->options);
}

static struct json_object *
help_json(const struct command *command)
{
	struct json_object *o = json_object_new_object(), *options = json_object_new_array();

	out_add_text(o, "name", command->name);
	out_add_text(o, "args", command->args);
	out_add_text(o, "help", command->help);
	for (size_t i = 0; i < OPTION_HELPS; i++) {
		const struct option_help *h = &option_helps[i];
		struct json_object *option;

		if (h->bit && !(command->options & h->bit))
			continue;
		option = json_object_new_object();
		out_add_text(option, "option", h->option + strspn(h->option, " "));
		out_add_text(option, "help", h->help);
		control_append(options, option);
	}
	control_add(o, "options", options);
	return o;
}

static struct json_object *
help_all_json(void)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		control_append(list, help_json(&commands[i]));
	control_add(o, "commands", list);
	return o;
}

static int
help(struct ctl *c, char **args, int count)
{
	const struct command *command;
	int words;

	if (count > 0 && strcmp(args[0], "help") == 0)
		count = 0;
	command = count > 0 ? command_find(args, count, &words) : NULL;
	if (!command && count > 0)
		return err_set(&c->err, REPL_E_INVAL, "there is no command '%s'", args[0]);
	if (c->options.json)
		ctl_answer(c, command ? help_json(command) : help_all_json());
	else if (command)
		help_one(command);
	else
		help_all();
	return 0;
}

/* ---- options ---- */

static void
take_plan_option(struct ctl *c, int opt, unsigned *given)
{
	if (opt == LONG_ALL)
		c->options.all = true;
	else if (opt == LONG_CSV)
		c->options.csv = true;
	else
		c->options.plan[opt - LONG_PLAN] = optarg;
	*given |= OPT_PLAN;
}

/* Their order counts. */
static void
take_run_option(struct ctl *c, int opt)
{
	struct ctl_run *run = &c->options.run;

	if (opt == LONG_SET && run->set_count == CTL_RUN_SETS) {
		(void)err_set(&c->err, REPL_E_INVAL, "more than %d settings", CTL_RUN_SETS);
	} else if (opt == LONG_SET) {
		run->set[run->set_count++] = optarg;
	} else if (run->pool_count + (opt == LONG_POOL) > CTL_RUN_POOLS) {
		(void)err_set(&c->err, REPL_E_INVAL, "more than %d pools", CTL_RUN_POOLS);
	} else if (run->count == CTL_RUN_MAX) {
		(void)err_set(&c->err, REPL_E_INVAL, "more than %d pools and replicas",
			      CTL_RUN_MAX);
	} else {
		run->pool_count += opt == LONG_POOL;
		run->option[run->count].pool = opt == LONG_POOL;
		run->option[run->count++].text = optarg;
	}
}

/* Options that only fill a member: where, whether with a value, and the bit that is given. */
static const struct plain_option {
	int opt;
	size_t member; /* offset in struct ctl_options */
	bool value;    /* the member is a text, else a flag */
	unsigned given;
} plain_options[] = {
	{'c', offsetof(struct ctl_options, config), true, 0},
	{'i', offsetof(struct ctl_options, identity), true, 0},
	{LONG_KNOWN_HOSTS, offsetof(struct ctl_options, known_hosts), true, 0},
	{LONG_JSON, offsetof(struct ctl_options, json), false, 0},
	{'f', offsetof(struct ctl_options, force), false, OPT_FORCE},
	{'n', offsetof(struct ctl_options, dry_run), false, OPT_DRY_RUN},
	{'s', offsetof(struct ctl_options, size), true, OPT_SIZE},
	{LONG_FROM, offsetof(struct ctl_options, from), true, OPT_FROM},
	{LONG_SPARSE, offsetof(struct ctl_options, sparse), false, OPT_SPARSE},
	{LONG_QUICK, offsetof(struct ctl_options, quick), false, OPT_QUICK},
	{LONG_SECONDS, offsetof(struct ctl_options, seconds), true, OPT_SECONDS},
	{LONG_COUNT, offsetof(struct ctl_options, count), true, OPT_COUNT},
	{LONG_PLOT, offsetof(struct ctl_options, plot), true, OPT_PLOT},
	{LONG_TAIL, offsetof(struct ctl_options, tail), true, OPT_TAIL},
	{LONG_METHOD, offsetof(struct ctl_options, method), true, OPT_METHOD},
	{LONG_WATCH, offsetof(struct ctl_options, watch), false, OPT_WATCH},
	{LONG_FOR, offsetof(struct ctl_options, until), true, OPT_WAIT},
	{LONG_TIMEOUT, offsetof(struct ctl_options, timeout), true, OPT_WAIT},
	{LONG_SEED, offsetof(struct ctl_options, seed), true, OPT_SEED},
	{LONG_DISCARD, offsetof(struct ctl_options, discard), true, OPT_DISCARD},
	{'h', offsetof(struct ctl_options, help), false, 0},
	{'V', offsetof(struct ctl_options, version), false, 0},
};

static bool
take_plain_option(struct ctl *c, int opt, unsigned *given)
{
	for (size_t i = 0; i < sizeof(plain_options) / sizeof(plain_options[0]); i++) {
		const struct plain_option *p = &plain_options[i];
		char *member = (char *)&c->options + p->member;

		if (p->opt != opt)
			continue;
		if (p->value)
			*(const char **)(void *)member = optarg;
		else
			*(bool *)(void *)member = true;
		*given |= p->given;
		return true;
	}
	return false;
}

/* Of several letters in one word only optopt tells which it was. */
static int
refuse_option(struct ctl *c, int opt, const char *word)
{
	const struct option *o = long_options;

	if (opt == ':')
		return err_set(&c->err, REPL_E_INVAL, "option '%s' needs a value", word);
	while (o->name && (optopt == 0 || o->val != optopt))
		o++;
	if (o->name)
		return err_set(&c->err, REPL_E_INVAL, "option '--%s' takes no value", o->name);
	if (optopt)
		return err_set(&c->err, REPL_E_INVAL, "option '-%c' is not known", optopt);
	return err_set(&c->err, REPL_E_INVAL, "option '%s' is not known", word);
}

/* One option of the user's. */
static void
take_option(struct ctl *c, int opt, char **argv, unsigned *given)
{
	if (take_plain_option(c, opt, given))
		return;
	if (opt == LONG_REPLICA || opt == LONG_POOL || opt == LONG_SET) {
		take_run_option(c, opt);
		*given |= OPT_RUN;
	} else if (opt >= LONG_ALL) {
		take_plan_option(c, opt, given);
	} else if (!c->err.code) {
		/* The first one is told, but a --json behind it counts. */
		(void)refuse_option(c, opt, argv[optind - 1]);
	}
}

static const char *
option_name(unsigned options)
{
	return options & OPT_SIZE      ? "--size"
	       : options & OPT_FROM    ? "--from"
	       : options & OPT_SPARSE  ? "--sparse"
	       : options & OPT_DRY_RUN ? "--dry-run"
	       : options & OPT_QUICK   ? "--quick"
	       : options & OPT_SECONDS ? "--seconds"
	       : options & OPT_COUNT   ? "--count"
	       : options & OPT_PLOT    ? "--plot"
	       : options & OPT_TAIL    ? "--tail"
	       : options & OPT_METHOD  ? "--method"
	       : options & OPT_SEED    ? "--seed"
	       : options & OPT_WATCH   ? "--watch"
	       : options & OPT_WAIT    ? "the options of wait"
	       : options & OPT_DISCARD ? "--discard"
	       : options & OPT_RUN     ? "the options of run"
	       : options & OPT_PLAN    ? "the options of plan"
				       : "--force";
}

static int
check_use(struct ctl *c, const struct command *command, int arg_count, unsigned given)
{
	unsigned wrong = given & ~command->options;
	bool more = command->options & OPT_MORE;

	if (!wrong &&
	    ((arg_count >= command->arg_count && arg_count <= command->arg_count + more) ||
	     (command->arg_count == ANY_COUNT && arg_count > 0)))
		return 0;
	ctl_next(c, "replctl help %s", command->name);
	if (wrong)
		return err_set(&c->err, REPL_E_INVAL, "%s does not take %s", command->name,
			       option_name(wrong));
	if (command->arg_count == ANY_COUNT)
		return err_set(&c->err, REPL_E_INVAL, "no %s is named: replctl %s %s",
			       command->options & OPT_RUN ? "program" : "replica", command->name,
			       command->args);
	return err_set(&c->err, REPL_E_INVAL, "%s takes %d%s argument%s, got %d: replctl %s %s",
		       command->name, command->arg_count, more ? " or 2" : "",
		       command->arg_count == 1 && !more ? "" : "s", arg_count, command->name,
		       command->args);
}

static int
version(struct ctl *c)
{
	struct json_object *o = json_object_new_object();

	if (!c->options.json)
		(void)puts("replctl " REPL_VERSION_TEXT);
	out_add_text(o, "version", REPL_VERSION_TEXT);
	ctl_answer(c, o);
	return 0;
}

static int
dispatch(struct ctl *c, char **args, int count, unsigned given)
{
	const struct command *command;
	int rc, words;

	if (c->options.version)
		return version(c);
	if (c->options.help || (count > 0 && strcmp(args[0], "help") == 0)) {
		bool word = count > 0 && strcmp(args[0], "help") == 0;

		return help(c, args + word, count - word);
	}
	if (count == 0)
		return err_set(&c->err, REPL_E_INVAL, "no command given");
	command = command_find(args, count, &words);
	if (!command)
		return err_set(&c->err, REPL_E_INVAL, "there is no command '%s'", args[0]);
	/* Ignored by who started us, what a command of ssh's config ends with would not be told. */
	if (!(command->options & OPT_RUN))
		(void)signal(SIGCHLD, SIG_DFL);
	rc = check_use(c, command, count - words, given);
	if (!rc && !(command->options & (OPT_PLAN | OPT_SEED)))
		rc = ctl_configure(c);
	if (!rc)
		rc = command->run(c, args + words);
	if (rc == REPL_E_INVAL) {
		ctl_disconnect(c); /* what the target advises comes first */
		ctl_next(c, "replctl help %s", command->name);
	}
	return rc;
}

/*
 * A pool or a connection must not become standard output, where texts go. What
 * was closed remains one that can't be written to.
 */
static int
standard_fds_open(struct err *e)
{
	/* The lowest one that is free is taken. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
			return err_errno(e, REPL_E_FAILED, errno,
					 "descriptor %d is closed: leave it open, or mend what "
					 "would take its place, /dev/null",
					 fd);
	return 0;
}

int
main(int argc, char **argv)
{
	struct ctl c;
	unsigned given = 0;
	int opt, status;

	fab_leave_signals();
	interrupt_begin();
	memset(&c, 0, sizeof(c));
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":c:i:fns:hV", long_options, NULL)) != -1)
		take_option(&c, opt, argv, &given);
	if (!c.err.code)
		(void)standard_fds_open(&c.err);
	if (!c.err.code)
		(void)dispatch(&c, argv + optind, argc - optind, given);
	status = ctl_finish(&c);
	ctl_fini(&c);
	return status;
}
