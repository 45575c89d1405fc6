/* SPDX-License-Identifier: BSD-3-Clause */
/* One message is one whole, printable, dated line, whatever a peer put into it. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"

#define THREADS 4
#define LINES   200

static char dir[] = "/tmp/test_log.XXXXXX";
static char path[64];
static char conf_path[] = "repld.conf";
static struct conf conf;

/* Of a log that can't be opened, instead of libc's. */
static int open_errno;

int
open(const char *file, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (!open_errno)
		return (int)syscall(SYS_openat, AT_FDCWD, file, flags, mode);
	errno = open_errno;
	return -1;
}

/* What is in the log file; zero-terminated, to be freed. */
static char *
content(void)
{
	FILE *f = fopen(path, "r");
	char *data = calloc(1, 1U << 20);

	assert_non_null(f);
	assert_non_null(data);
	assert_true(fread(data, 1, (1U << 20) - 1, f) < (1U << 20) - 1);
	assert_int_equal(fclose(f), 0);
	return data;
}

static int
open_log(void **state)
{
	struct err e;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/log", dir);
	conf = (struct conf){.path = conf_path,
			     .log = CONF_LOG_FILE,
			     .log_file = path,
			     .log_level = CONF_LEVEL_INFO};
	return log_open(&conf, &e);
}

static int
close_log(void **state)
{
	(void)state;
	log_close();
	log_set_context(NULL);
	(void)unlink(path);
	if (rmdir(dir))
		return -1;
	(void)strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return 0;
}

/* The log is one line that ends in want behind its head. */
static void
assert_one_line(const char *want)
{
	char *data = content();
	char *text = strstr(data, "]");

	assert_non_null(text);
	assert_string_equal(text + 1, want);
	assert_ptr_equal(strchr(data, '\n'), data + strlen(data) - 1);
	free(data);
}

static void
a_line_has_utc_time_process_and_level(void **state)
{
	int year, month, day, hour, minute, second, ms, pid, end = 0;
	time_t before = time(NULL);
	struct tm tm = {0};
	char *data;

	(void)state;
	assert_int_equal(setenv("TZ", "Asia/Tokyo", 1), 0);
	tzset();
	log_warning("disk %d", 3);
	data = content();
	assert_int_equal(sscanf(data, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ repld[%d] warning: disk 3%n",
				&year, &month, &day, &hour, &minute, &second, &ms, &pid, &end),
			 8);
	assert_string_equal(data + end, "\n");
	assert_int_equal(data[10], 'T');
	assert_int_equal(data[23], 'Z');
	assert_int_equal(pid, getpid());
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	tm.tm_hour = hour;
	tm.tm_min = minute;
	tm.tm_sec = second;
	assert_true(timegm(&tm) >= before && timegm(&tm) <= time(NULL));
	free(data);
}

static void
bytes_of_a_peer_are_escaped(void **state)
{
	(void)state;
	log_info("peer '%s'", "a\nb\r\t\\\033[2J\x7f\xc2\x9b\xff~");
	assert_one_line(" info: peer 'a\\nb\\x0d\\t\\\\\\x1b[2J\\x7f\\xc2\\x9b\\xff~'\n");
}

static void
the_context_is_in_front_and_escaped(void **state)
{
	(void)state;
	log_set_context("session 7 ops\n@host");
	log_error("gone");
	assert_one_line(" error: session 7 ops\\n@host: gone\n");
	log_set_context("");
	log_error("again");
	{
		char *data = content();

		assert_non_null(strstr(data, " error: again\n"));
		free(data);
	}
}

static void
a_long_context_is_bounded(void **state)
{
	char text[4096], *data;

	(void)state;
	memset(text, 'c', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_set_context(text);
	log_info("end");
	data = content();
	assert_non_null(strstr(data, "ccc: end\n"));
	assert_true(strlen(data) < 400);
	free(data);
}

static void
a_long_line_is_cut_and_marked(void **state)
{
	char text[8192], *data;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_info("%s", text);
	data = content();
	assert_int_equal(strlen(data), LOG_LINE_MAX);
	assert_string_equal(data + LOG_LINE_MAX - 5, "x...\n");
	free(data);
	/* An escape is whole or not there. */
	memset(text, '\n', sizeof(text) - 1);
	assert_int_equal(truncate(path, 0), 0);
	log_info("%s", text);
	data = content();
	assert_true(strlen(data) <= LOG_LINE_MAX);
	assert_string_equal(data + strlen(data) - 6, "\\n...\n");
	free(data);
}

static void
the_level_decides_what_is_written(void **state)
{
	struct err e;
	char *data;

	(void)state;
	log_debug("hidden");
	data = content();
	assert_string_equal(data, "");
	free(data);
	conf.log_level = CONF_LEVEL_DEBUG;
	assert_int_equal(log_open(&conf, &e), 0);
	log_debug("shown");
	assert_one_line(" debug: shown\n");
	assert_int_equal(truncate(path, 0), 0);
	conf.log_level = CONF_LEVEL_ERROR;
	assert_int_equal(log_open(&conf, &e), 0);
	log_warning("hidden");
	log_error("shown");
	assert_one_line(" error: shown\n");
}

static void
a_file_is_private_and_appended_to(void **state)
{
	struct stat st;
	struct err e;
	char *data;

	(void)state;
	log_info("first");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(log_open(&conf, &e), 0);
	log_info("second");
	data = content();
	assert_non_null(strstr(data, "first\n"));
	assert_non_null(strstr(data, "second\n"));
	free(data);
	/* Whoever empties the file, such as logrotate, leaves no hole. */
	assert_int_equal(truncate(path, 0), 0);
	log_info("third");
	assert_one_line(" info: third\n");
}

static void
what_is_no_file_is_refused(void **state)
{
	char fifo[80], want[160];
	struct err e;

	(void)state;
	conf.log_file = "/nowhere/log";
	assert_int_equal(log_open(&conf, &e), REPL_E_CONFIG);
	assert_string_equal(e.text,
			    "repld.conf: key 'log': '/nowhere/log': No such file or directory");
	conf.log_file = dir;
	assert_int_equal(log_open(&conf, &e), REPL_E_CONFIG);
	(void)snprintf(want, sizeof(want), "repld.conf: key 'log': '%s': Is a directory", dir);
	assert_string_equal(e.text, want);
	conf.log_file = "/dev/null";
	assert_int_equal(log_open(&conf, &e), REPL_E_CONFIG);
	assert_string_equal(e.text, "repld.conf: key 'log': '/dev/null' is not a regular file");
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	conf.log_file = fifo;
	(void)alarm(5); /* a FIFO that is waited for ends the test */
	assert_int_equal(log_open(&conf, &e), REPL_E_CONFIG);
	(void)alarm(0);
	(void)snprintf(want, sizeof(want), "repld.conf: key 'log': '%s' is not a regular file",
		       fifo);
	assert_string_equal(e.text, want);
	assert_int_equal(unlink(fifo), 0);
	/* The log that was open still is. */
	log_info("still here");
	assert_one_line(" info: still here\n");
}

static void *
write_lines(void *arg)
{
	for (int i = 0; i < LINES; i++) {
		log_info("thread %c %d end", *(char *)arg, i);
		log_set_context(i % 2 ? "context one" : "context two, longer");
	}
	return NULL;
}

static void
threads_do_not_mix_their_lines(void **state)
{
	pthread_t threads[THREADS];
	char names[THREADS] = {'a', 'b', 'c', 'd'};
	unsigned count = 0;
	char *data, *save = NULL;

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &names[i]), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	data = content();
	for (char *l = strtok_r(data, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		assert_int_equal(strncmp(l + strlen(l) - 4, " end", 4), 0);
		assert_null(strstr(strstr(l, "repld[") + 1, "repld["));
		count++;
	}
	assert_int_equal(count, THREADS * LINES);
	free(data);
}

static void
errno_is_kept(void **state)
{
	(void)state;
	errno = EDOM;
	log_info("x");
	assert_int_equal(errno, EDOM);
}

/* Run write_it with stderr going to the file; the log itself is elsewhere. */
static void
with_stderr_in_file(int log, void (*write_it)(void))
{
	struct conf c = {.log = log, .log_level = CONF_LEVEL_INFO};
	struct err e;
	int saved = dup(STDERR_FILENO);
	int fd = open(path, O_WRONLY | O_APPEND);

	assert_true(saved >= 0 && fd >= 0);
	assert_int_equal(log_open(&c, &e), 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	write_it();
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	(void)close(saved);
	(void)close(fd);
}

static void
write_info(void)
{
	log_info("to stderr");
}

static void
write_syslog(void)
{
	log_info("to syslog");
}

static void
write_after_close(void)
{
	log_close();
	log_info("closed");
}

static void
stderr_takes_what_has_no_other_place(void **state)
{
	char *data;

	(void)state;
	with_stderr_in_file(CONF_LOG_STDERR, write_info);
	assert_one_line(" info: to stderr\n");
	assert_int_equal(truncate(path, 0), 0);
	with_stderr_in_file(CONF_LOG_SYSLOG, write_syslog);
	data = content();
	assert_string_equal(data, "");
	free(data);
	assert_int_equal(truncate(path, 0), 0);
	with_stderr_in_file(CONF_LOG_SYSLOG, write_after_close);
	assert_one_line(" info: closed\n");
}

static int lacks_errno;

static void
open_what_is_lacking(void)
{
	struct err e;

	err_clear(&e);
	open_errno = lacks_errno;
	assert_int_equal(log_open(&conf, &e), 0);
	open_errno = 0;
	assert_int_equal(e.code, 0);
	log_info("a session");
}

static void
a_disk_of_its_own_keeps_nobody_away(void **state)
{
	static const int lacks[] = {EROFS, ENOSPC, EDQUOT, EIO, ENFILE, EMFILE, ENOMEM};
	static const int wrong[] = {EACCES, ENOENT, ENOTDIR, ELOOP};
	char name[] = "/nowhere/log";
	struct err e;

	(void)state;
	conf.log_file = name;
	for (unsigned i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
		char *data, want[160];

		lacks_errno = lacks[i];
		with_stderr_in_file(CONF_LOG_STDERR, open_what_is_lacking);
		data = content();
		(void)snprintf(want, sizeof(want),
			       "repld.conf: key 'log': '/nowhere/log': %s: ", strerror(lacks[i]));
		assert_non_null(strstr(data, want));
		assert_non_null(strstr(data, " info: a session\n"));
		free(data);
		assert_int_equal(truncate(path, 0), 0);
	}
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		open_errno = wrong[i];
		assert_int_equal(log_open(&conf, &e), REPL_E_CONFIG);
		open_errno = 0;
	}
}

#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, open_log, close_log)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOG_TEST(a_line_has_utc_time_process_and_level),
		LOG_TEST(bytes_of_a_peer_are_escaped),
		LOG_TEST(the_context_is_in_front_and_escaped),
		LOG_TEST(a_long_context_is_bounded),
		LOG_TEST(a_long_line_is_cut_and_marked),
		LOG_TEST(the_level_decides_what_is_written),
		LOG_TEST(a_file_is_private_and_appended_to),
		LOG_TEST(what_is_no_file_is_refused),
		LOG_TEST(threads_do_not_mix_their_lines),
		LOG_TEST(errno_is_kept),
		LOG_TEST(a_disk_of_its_own_keeps_nobody_away),
		LOG_TEST(stderr_takes_what_has_no_other_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
