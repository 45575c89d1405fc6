/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_env.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define DENIED_MAX 16U

static int
env_stack(size_t size)
{
	pthread_attr_t attr;
	int ret = pthread_attr_init(&attr);

	if (!ret)
		ret = pthread_attr_setstacksize(&attr, size);
	if (!ret)
		ret = pthread_setattr_default_np(&attr);
	errno = ret;
	return ret ? -1 : 0;
}

static void
on_alarm(int signo)
{
	(void)signo;
}

/* Without SA_RESTART. */
static int
env_alarm(long us)
{
	const struct itimerval every = {{us / 1000000, us % 1000000}, {us / 1000000, us % 1000000}};
	struct sigaction sa = {.sa_handler = on_alarm};

	if (sigaction(SIGALRM, &sa, NULL))
		return -1;
	return setitimer(ITIMER_REAL, &every, NULL);
}

static int
env_become(unsigned id)
{
	if (setgroups(0, NULL) || setgid(id))
		return -1;
	return setuid(id);
}

static int
env_root(const char *directory)
{
	return chroot(directory) || chdir("/") ? -1 : 0;
}

static long
syscall_number(const char *name)
{
	static const struct {
		const char *name;
		long number;
	} known[] = {
#define CALL(name) {#name, SYS_##name}
		CALL(socket), CALL(connect), CALL(clone3), CALL(getrandom), CALL(sched_getaffinity),
#undef CALL
	};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].number;
	return -1;
}

static int
env_deny(unsigned errnum, char *const *names, unsigned count)
{
	struct sock_filter code[DENIED_MAX + 3];
	struct sock_fprog program = {.filter = code};
	unsigned n = 0;

	if (count > DENIED_MAX)
		return -1;
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < count; i++) {
		long number = syscall_number(names[i]);

		errno = EINVAL;
		if (number < 0)
			return -1;
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, (unsigned char)(count - i), 0);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errnum);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			    &program);
}

static bool
main_is_gone(void)
{
	FILE *f = fopen("/proc/self/stat", "re");
	char state = 0;
	bool told = f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1;

	if (f)
		(void)fclose(f);
	return told && state == 'Z';
}

struct heir {
	void (*go_on)(void *arg);
	void *arg;
};

static void *
heir_main(void *arg)
{
	const struct heir *h = arg;

	while (!main_is_gone())
		(void)usleep(1000);
	h->go_on(h->arg);
	return NULL;
}

int
env_main_leaves(void (*go_on)(void *arg), void *arg)
{
	static struct heir h;
	pthread_t thread;
	int ret;

	h = (struct heir){go_on, arg};
	ret = pthread_create(&thread, NULL, heir_main, &h);
	if (!ret)
		pthread_exit(NULL);
	errno = ret;
	return -1;
}

bool
env_run(char *const *word, unsigned count, int *rc)
{
	const char *c = word[0], *arg = count > 1 ? word[1] : "";
	unsigned long number = strtoul(arg, NULL, 0);

	if (strcmp(c, "stack") == 0)
		*rc = env_stack(number);
	else if (strcmp(c, "alarm") == 0)
		*rc = env_alarm((long)number);
	else if (strcmp(c, "become") == 0)
		*rc = env_become((unsigned)number);
	else if (strcmp(c, "root") == 0)
		*rc = env_root(arg);
	else if (strcmp(c, "deny") == 0 && count > 2)
		*rc = env_deny((unsigned)number, word + 2, count - 2);
	else
		return false;
	return true;
}
