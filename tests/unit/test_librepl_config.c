/* SPDX-License-Identifier: BSD-3-Clause */
/* File, environment and program set the same keys, and a refusal changes nothing. */
#include "unit.h"

#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"
#include "plan.h"

static char dir[] = "/tmp/test_librepl_config.XXXXXX";
static char path[64];

static int
make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/repl.conf", dir);
	return unsetenv("REPL_CONFIG");
}

static int
remove_dir(void **state)
{
	(void)state;
	return unlink(path) || rmdir(dir);
}

static void
write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static struct repl_config *
new_config(void)
{
	struct repl_config *c = NULL;

	assert_int_equal(repl_config_new(&c), 0);
	assert_non_null(c);
	return c;
}

static void
check_defaults(const struct repl_config *c)
{
	assert_int_equal(c->target_count, 0);
	assert_null(c->identity);
	assert_null(c->known_hosts);
	assert_null(c->pool_file);
	assert_string_equal(c->provider, "auto");
	assert_string_equal(c->command, "repld session");
	assert_int_equal(c->lanes, 4);
	assert_int_equal(c->connect_timeout_ms, 10000);
	assert_int_equal(c->op_timeout_ms, 5000);
	assert_int_equal(c->close_timeout_ms, 5000);
	assert_int_equal(c->resync_timeout_ms, 3600000);
	assert_int_equal(c->heartbeat_interval_ms, 500);
	assert_int_equal(c->heartbeat_timeout_ms, 1500);
	assert_int_equal(c->reconnect_min_ms, 200);
	assert_int_equal(c->reconnect_max_ms, 30000);
	assert_int_equal(c->block_timeout_ms, 60000);
	assert_int_equal(c->busy_poll_us, 50);
	assert_int_equal(c->resync_rate, 0);
	assert_int_equal(c->on_loss, REPL_ON_LOSS_DEGRADE);
	assert_int_equal(c->method, 0);
	assert_int_equal(c->ack, ACK_ALL);
	assert_int_equal(c->on_lag, CONFIG_ON_LAG_SLOW);
	assert_int_equal(c->async_lag_bytes, 64U << 20);
	assert_int_equal(c->async_lag_ms, 5000);
}

static const char all_keys[] = "[repl]\n"
			       "target = a/p\n"
			       "target = ops@b:2222/eu/p\n"
			       "async-target = far/p\n"
			       "ack = quorum\n"
			       "on-lag = degrade\n"
			       "async-lag-bytes = 128M\n"
			       "async-lag-time = 4\n"
			       "identity = /k/id\n"
			       "known-hosts = /k/hosts\n"
			       "provider = verbs\n"
			       "command = sudo repld session\n"
			       "pool-file = /mnt/p\n"
			       "lanes = 64\n"
			       "connect-timeout = 1\n"
			       "op-timeout = 2\n"
			       "close-timeout = 3\n"
			       "resync-timeout = 604800000\n"
			       "heartbeat-interval = 5\n"
			       "heartbeat-timeout = 6\n"
			       "reconnect-min = 7\n"
			       "reconnect-max = 8\n"
			       "block-timeout = 9\n"
			       "busy-poll = 0\n"
			       "resync-rate = 10M\n"
			       "on-loss = fail\n"
			       "method = deposit-completion\n";

static void
check_all_keys(const struct repl_config *c)
{
	assert_int_equal(c->target_count, 3);
	assert_string_equal(c->targets[2].host, "far");
	assert_true(!c->async[0] && !c->async[1] && c->async[2]);
	assert_int_equal(c->ack, ACK_QUORUM);
	assert_int_equal(c->on_lag, CONFIG_ON_LAG_DEGRADE);
	assert_int_equal(c->async_lag_bytes, 128U << 20);
	assert_int_equal(c->async_lag_ms, 4);
	assert_string_equal(c->targets[0].host, "a");
	assert_string_equal(c->targets[1].user, "ops");
	assert_int_equal(c->targets[1].port, 2222);
	assert_string_equal(c->targets[1].pool, "eu/p");
	assert_string_equal(c->identity, "/k/id");
	assert_string_equal(c->known_hosts, "/k/hosts");
	assert_string_equal(c->provider, "verbs");
	assert_string_equal(c->command, "sudo repld session");
	assert_string_equal(c->pool_file, "/mnt/p");
	assert_int_equal(c->lanes, 64);
	assert_int_equal(c->connect_timeout_ms, 1);
	assert_int_equal(c->op_timeout_ms, 2);
	assert_int_equal(c->close_timeout_ms, 3);
	assert_int_equal(c->resync_timeout_ms, 604800000);
	assert_int_equal(c->heartbeat_interval_ms, 5);
	assert_int_equal(c->heartbeat_timeout_ms, 6);
	assert_int_equal(c->reconnect_min_ms, 7);
	assert_int_equal(c->reconnect_max_ms, 8);
	assert_int_equal(c->block_timeout_ms, 9);
	assert_int_equal(c->busy_poll_us, 0);
	assert_int_equal(c->resync_rate, 10U << 20);
	assert_int_equal(c->on_loss, REPL_ON_LOSS_FAIL);
	assert_int_equal(c->method, 1 + PLAN_DEPOSIT_COMPLETION);
}

static void
a_new_config_has_the_defaults(void **state)
{
	struct repl_config *c = new_config();

	(void)state;
	check_defaults(c);
	repl_config_free(c);
	repl_config_free(NULL);
}

/* More than half of those that count; asynchronous ones don't. */
static void
needed_replicas_are_counted_without_asynchronous_ones(void **state)
{
	static const unsigned quorum[] = {0, 1, 2, 2, 3, 3};
	char text[8];

	(void)state;
	for (unsigned n = 0; n <= 5; n++) {
		struct repl_config *c = new_config();

		for (unsigned i = 0; i < n; i++) {
			(void)snprintf(text, sizeof(text), "h%u/p", i);
			assert_int_equal(config_add_target(c, text, NULL), 0);
		}
		assert_int_equal(config_add_async_target(c, "far/p", NULL), 0);
		assert_int_equal(config_needed(c), n);
		assert_true(config_queued(c, n) && (n == 0 || !config_queued(c, 0)));
		c->ack = ACK_QUORUM;
		assert_int_equal(config_needed(c), quorum[n]);
		assert_true(config_queued(c, 0));
		c->ack = ACK_ANY;
		assert_int_equal(config_needed(c), n ? 1 : 0);
		repl_config_free(c);
	}
}

static void
a_file_sets_every_key(void **state)
{
	struct repl_config *c = new_config();

	(void)state;
	write_file(all_keys);
	assert_int_equal(repl_config_load(c, path), 0);
	check_all_keys(c);
	repl_config_free(c);
}

static void
a_program_sets_every_key(void **state)
{
	struct repl_config *c = new_config();
	char text[sizeof(all_keys)], *save = NULL, *line;

	(void)state;
	memcpy(text, all_keys, sizeof(text));
	(void)strtok_r(text, "\n", &save);
	while ((line = strtok_r(NULL, "\n", &save))) {
		char *eq = strstr(line, " = ");

		*eq = '\0';
		assert_int_equal(repl_config_set(c, line, eq + 3), 0);
	}
	check_all_keys(c);
	repl_config_free(c);
}

static void
take_over(void *arg, const char *key, const char *value)
{
	assert_int_equal(repl_config_set(arg, key, value), 0);
}

/* But for the targets, which are added in their order. */
static void
each_key_is_told_as_it_is_set(void **state)
{
	struct repl_config *c = new_config(), *like = new_config(), *plain = new_config();

	(void)state;
	config_each(plain, take_over, like);
	check_defaults(like);
	write_file(all_keys);
	assert_int_equal(repl_config_load(c, path), 0);
	config_each(c, take_over, like);
	assert_int_equal(like->target_count, 0);
	memcpy(like->targets, c->targets, sizeof(c->targets));
	memcpy(like->async, c->async, sizeof(c->async));
	like->target_count = c->target_count;
	check_all_keys(like);
	repl_config_free(c);
	repl_config_free(like);
	repl_config_free(plain);
}

static void
the_environment_names_a_file(void **state)
{
	struct repl_config *c = new_config();

	(void)state;
	assert_int_equal(repl_config_load(c, NULL), 0);
	assert_int_equal(setenv("REPL_CONFIG", "", 1), 0);
	assert_int_equal(repl_config_load(c, NULL), 0);
	check_defaults(c);
	assert_int_equal(setenv("REPL_CONFIG", "/nowhere/repl.conf", 1), 0);
	assert_int_equal(repl_config_load(c, NULL), REPL_E_CONFIG);
	assert_string_equal(repl_errormsg(), "/nowhere/repl.conf: No such file or directory");
	write_file("[repl]\nlanes = 8\n");
	/* A path given comes first, also one that names nothing. */
	assert_int_equal(repl_config_load(c, ""), REPL_E_CONFIG);
	assert_string_equal(repl_errormsg(), "no configuration file: its path is empty");
	check_defaults(c);
	assert_int_equal(repl_config_load(c, path), 0);
	assert_int_equal(c->lanes, 8);
	write_file(all_keys);
	assert_int_equal(setenv("REPL_CONFIG", path, 1), 0);
	assert_int_equal(repl_config_load(c, NULL), 0);
	check_all_keys(c);
	assert_int_equal(unsetenv("REPL_CONFIG"), 0);
	repl_config_free(c);
}

static void
a_refused_file_changes_nothing(void **state)
{
	struct repl_config *c = new_config();
	char text[sizeof(all_keys) + 16], want[128];
	unsigned line = 2; /* behind an empty one */

	(void)state;
	for (const char *at = all_keys; *at; at++)
		line += *at == '\n';
	(void)snprintf(text, sizeof(text), "%s\nlane = 3\n", all_keys);
	write_file(text);
	assert_int_equal(repl_config_load(c, path), REPL_E_CONFIG);
	(void)snprintf(want, sizeof(want), "%s:%u: key 'lane': unknown; the keys are: target, ",
		       path, line);
	assert_int_equal(strncmp(repl_errormsg(), want, strlen(want)), 0);
	check_defaults(c);
	write_file("[repl]\nlanes = 2\ntarget = nopool\n");
	assert_int_equal(repl_config_load(c, path), REPL_E_CONFIG);
	(void)snprintf(want, sizeof(want), "%s:3: key 'target': ", path);
	assert_int_equal(strncmp(repl_errormsg(), want, strlen(want)), 0);
	check_defaults(c);
	repl_config_free(c);
}

static void
bad_values_are_refused(void **state)
{
	static const struct {
		const char *key, *value, *want;
	} cases[] = {
		{"lanes", "0", "key 'lanes': '0' is not a whole number from 1 to 64"},
		{"lanes", "65", "key 'lanes': '65' is not a whole number from 1 to 64"},
		{"op-timeout", "0",
		 "key 'op-timeout': '0' is not a whole number from 1 to 3600000"},
		{"busy-poll", "1001",
		 "key 'busy-poll': '1001' is not a whole number from 0 to 1000"},
		{"close-timeout", "1s",
		 "key 'close-timeout': '1s' is not a whole number from 1 to 3600000"},
		{"connect-timeout", "3600001",
		 "key 'connect-timeout': '3600001' is not a whole number from 1 to 3600000"},
		{"resync-timeout", "604800001",
		 "key 'resync-timeout': '604800001' is not a whole number from 1 to 604800000"},
		{"on-loss", "abort", "key 'on-loss': 'abort' is none of degrade, fail, block"},
		{"resync-rate", "63K",
		 "key 'resync-rate': '63K' is neither auto nor a number of bytes a second of at "
		 "least 64K"},
		{"provider", "sockets", "key 'provider': 'sockets' is none of auto, tcp, verbs"},
		{"identity", "", "key 'identity': has no value"},
		{"command", "a\nb", "key 'command': value has the control character 0x0a"},
	};
	struct repl_config *c = new_config();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(repl_config_set(c, cases[i].key, cases[i].value), REPL_E_CONFIG);
		assert_string_equal(repl_errormsg(), cases[i].want);
	}
	assert_int_equal(repl_config_set(c, "nonsense", "1"), REPL_E_CONFIG);
	assert_non_null(strstr(repl_errormsg(), "key 'nonsense': unknown; the keys are: target, "));
	assert_non_null(strstr(repl_errormsg(), ", on-loss"));
	check_defaults(c);
	repl_config_free(c);
}

static void
a_command_is_never_cut(void **state)
{
	struct repl_config *c = new_config();
	char text[CONFIG_COMMAND_MAX + 2];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(repl_config_set(c, "command", text), REPL_E_CONFIG);
	assert_string_equal(repl_errormsg(),
			    "key 'command': has 256 bytes, at most 255 are allowed");
	text[sizeof(text) - 2] = '\0';
	assert_int_equal(repl_config_set(c, "command", text), 0);
	assert_string_equal(c->command, text);
	repl_config_free(c);
}

static void
targets_are_whole_bounded_and_different(void **state)
{
	struct repl_config *c = new_config();
	char target[64];

	(void)state;
	assert_int_equal(repl_config_add_target(c, "host-without-pool"), REPL_E_INVAL);
	assert_string_not_equal(repl_errormsg(), "");
	assert_int_equal(c->target_count, 0);
	for (int i = 0; i < REPL_TARGETS_MAX; i++) {
		(void)snprintf(target, sizeof(target), "u@h%d:22/p", i);
		assert_int_equal(repl_config_add_target(c, target), 0);
	}
	assert_int_equal(repl_config_add_target(c, "u@h16:22/p"), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "target 'u@h16:22/p' is one too many, 16 are allowed");
	assert_int_equal(repl_config_add_target(c, "u@h3:22/p"), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "target 'u@h3:22/p' is there already");
	assert_int_equal(repl_config_set(c, "target", "u@h3:22/p"), REPL_E_CONFIG);
	assert_string_equal(repl_errormsg(), "key 'target': target 'u@h3:22/p' is there already");
	assert_int_equal(c->target_count, REPL_TARGETS_MAX);
	assert_string_equal(c->targets[15].host, "h15");
	repl_config_free(c);
}

static void
other_user_port_host_or_pool_is_another_target(void **state)
{
	static const char *const targets[] = {"h/p", "u@h/p", "h:22/p", "g/p", "h/q"};
	struct repl_config *c = new_config();

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		assert_int_equal(repl_config_add_target(c, targets[i]), 0);
	assert_int_equal(c->target_count, 5);
	repl_config_free(c);
}

static void
a_copy_shares_nothing(void **state)
{
	struct repl_config *c = new_config(), *n = NULL;
	struct err e;

	(void)state;
	write_file(all_keys);
	assert_int_equal(repl_config_load(c, path), 0);
	assert_int_equal(config_copy(c, &n, &e), 0);
	assert_int_equal(repl_config_set(c, "identity", "/other"), 0);
	repl_config_free(c);
	check_all_keys(n);
	repl_config_free(n);
}

/* What it has of others is theirs. */
static void
a_copy_for_a_handle_beside_others(void **state)
{
	struct repl_config *c = new_config(), *n = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(config_add_async_target(c, "h/p", &e), 0);
	assert_int_equal(config_add_target(c, "h/q", &e), 0);
	assert_int_equal(config_set(c, "ack", "any", &e), 0);
	assert_int_equal(config_set(c, "status-socket", "/s", &e), 0);
	assert_int_equal(config_set(c, "metrics-file", "/m", &e), 0);
	assert_int_equal(config_set(c, "identity", "/key", &e), 0);
	assert_int_equal(config_copy_for(c, "no target", &n, &e), REPL_E_INVAL);
	assert_null(n);
	assert_int_equal(config_copy_for(c, "h/q", &n, &e), 0);
	assert_int_equal(n->target_count, 1);
	assert_string_equal(n->targets[0].pool, "q");
	assert_false(config_queued(n, 0));
	assert_null(n->status_socket);
	assert_null(n->metrics_file);
	assert_string_equal(n->identity, "/key");
	assert_string_equal(c->metrics_file, "/m");
	repl_config_free(n);
	repl_config_free(c);
}

static void
null_arguments_are_refused(void **state)
{
	struct repl_config *c = new_config();

	(void)state;
	assert_int_equal(repl_config_new(NULL), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "cfg is NULL");
	assert_int_equal(repl_config_load(NULL, NULL), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "cfg is NULL");
	assert_int_equal(repl_config_add_target(NULL, "h/p"), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "cfg is NULL");
	assert_int_equal(repl_config_add_target(c, NULL), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "target is NULL");
	assert_int_equal(repl_config_set(NULL, "lanes", "1"), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "cfg is NULL");
	assert_int_equal(repl_config_set(c, NULL, "1"), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "key is NULL");
	assert_int_equal(repl_config_set(c, "lanes", NULL), REPL_E_INVAL);
	assert_string_equal(repl_errormsg(), "value is NULL");
	repl_config_free(c);
}

static void *
fail_in_thread(void *arg)
{
	char *text = arg;

	(void)snprintf(text, 128, "%s", repl_errormsg());
	if (repl_config_new(NULL) == REPL_E_INVAL)
		(void)snprintf(text + strlen(text), 64, "|%s", repl_errormsg());
	return NULL;
}

static void
each_thread_has_its_own_last_error(void **state)
{
	struct repl_config *c = new_config();
	char text[256] = "";
	pthread_t thread;

	(void)state;
	assert_int_equal(repl_config_set(c, "lanes", NULL), REPL_E_INVAL);
	assert_int_equal(pthread_create(&thread, NULL, fail_in_thread, text), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(text, "|cfg is NULL");
	assert_string_equal(repl_errormsg(), "value is NULL");
	assert_int_equal(repl_config_set(c, "lanes", "1"), 0);
	assert_string_equal(repl_errormsg(),
			    "value is NULL"); /* the last error, not the last call */
	repl_config_free(c);
}

static void
every_method_may_be_named(void **state)
{
	struct repl_config *c = new_config();

	(void)state;
	for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
		assert_int_equal(
			repl_config_set(c, "method", plan_method_name((enum plan_method)m)), 0);
		assert_int_equal(c->method, 1 + m);
	}
	assert_int_equal(repl_config_set(c, "method", "fastest"), REPL_E_CONFIG);
	assert_non_null(strstr(repl_errormsg(), "fastest"));
	assert_int_equal(c->method, PLAN_METHOD_COUNT);
	assert_int_equal(repl_config_set(c, "method", "auto"), 0);
	assert_int_equal(c->method, 0);
	repl_config_free(c);
}

/* ssh(1) takes it from the user database, too. */
static void
a_home_directory_is_expanded(void **state)
{
	const struct passwd *me = getpwuid(getuid());
	struct repl_config *c = NULL;
	char want[4096];

	(void)state;
	assert_int_equal(repl_config_new(&c), 0);
	assert_non_null(me);
	(void)snprintf(want, sizeof(want), "%s/.ssh/id_repl", me->pw_dir);
	assert_int_equal(repl_config_set(c, "identity", "~/.ssh/id_repl"), 0);
	assert_string_equal(c->identity, want);
	(void)snprintf(want, sizeof(want), "~%s/.ssh/id_repl", me->pw_name);
	assert_int_equal(repl_config_set(c, "identity", want), 0);
	(void)snprintf(want, sizeof(want), "%s/.ssh/id_repl", me->pw_dir);
	assert_string_equal(c->identity, want);
	assert_int_equal(repl_config_set(c, "identity", "~no.such.user/id"), REPL_E_CONFIG);
	assert_string_equal(c->identity, want);
	assert_non_null(strstr(repl_errormsg(), "key 'identity': '~no.such.user/id': no home "));
	/* libssh knows it of its own files; of a pool's it is a character like others. */
	assert_int_equal(repl_config_set(c, "known-hosts", "~/known"), 0);
	assert_int_equal(repl_config_set(c, "pool-file", "~pool"), 0);
	assert_int_equal(config_fix_paths(c, NULL), 0);
	assert_string_equal(c->known_hosts, "~/known");
	assert_int_equal(c->pool_file[0], '/');
	repl_config_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_method_may_be_named),
		cmocka_unit_test(a_new_config_has_the_defaults),
		cmocka_unit_test(needed_replicas_are_counted_without_asynchronous_ones),
		cmocka_unit_test(a_file_sets_every_key),
		cmocka_unit_test(a_program_sets_every_key),
		cmocka_unit_test(each_key_is_told_as_it_is_set),
		cmocka_unit_test(the_environment_names_a_file),
		cmocka_unit_test(a_refused_file_changes_nothing),
		cmocka_unit_test(bad_values_are_refused),
		cmocka_unit_test(a_command_is_never_cut),
		cmocka_unit_test(targets_are_whole_bounded_and_different),
		cmocka_unit_test(other_user_port_host_or_pool_is_another_target),
		cmocka_unit_test(a_copy_shares_nothing),
		cmocka_unit_test(a_copy_for_a_handle_beside_others),
		cmocka_unit_test(null_arguments_are_refused),
		cmocka_unit_test(each_thread_has_its_own_last_error),
		cmocka_unit_test(a_home_directory_is_expanded),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
