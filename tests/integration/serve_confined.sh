# SPDX-License-Identifier: BSD-3-Clause
# repld does all of its work with no more system calls than its service has, and where /proc hides other processes: what a
# killed session has left is brought in, and a writer is ended for a promotion.
. "$(dirname "$0")/full_lib.sh"
UNIT=$(dirname "$0")/../../packaging/repld.service
command -v systemd-analyze >/dev/null && command -v cc >/dev/null || exit 77

# allowed NAME...: what sets of systemd's hold, in lines "SYSCALL(name)".
allowed() {
	for name in "$@"; do
		case $name in
		@*)
			# shellcheck disable=SC2046
			allowed $(systemd-analyze --no-pager syscall-filter "$name" |
				sed -n '2,$ { s/#.*//; /[a-z]/p; }')
			;;
		*) printf '#ifdef SYS_%s\nSYS_%s,\n#endif\n' "$name" "$name" ;;
		esac
	done
}
# shellcheck disable=SC2046
allowed $(sed -n 's/^SystemCallFilter=//p' "$UNIT") >"$TMP/allowed.h"
[ "$(grep -c '^SYS_' "$TMP/allowed.h")" -gt 200 ] || fail "the service's calls: $(head "$TMP/allowed.h")"
cat >"$TMP/confined.c" <<'C'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int allowed[] = {
#include "allowed.h"
};

#define COUNT (sizeof(allowed) / sizeof(allowed[0]))

int
main(int argc, char **argv)
{
	static struct sock_filter f[2 * COUNT + 2];
	struct sock_fprog program = {.filter = f};
	unsigned short n = 0;

	(void)argc;
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < COUNT; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (unsigned)allowed[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	program.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 2;
	execv(argv[1], argv + 1);
	return 2;
}
C
cc -std=gnu17 -O1 -o "$TMP/confined" "$TMP/confined.c" || fail "the filter does not compile"
{
	printf '#!/bin/sh\nmount -t proc -o hidepid=2 proc /proc || exit 77\n'
	printf 'exec "%s" "%s" "$@"\n' "$TMP/confined" "$REPLD"
} >"$TMP/repld.sh"
printf '#!/bin/sh\nexec unshare --mount sh "%s" "$@"\n' "$TMP/repld.sh" >"$TMP/repld"
chmod 755 "$TMP/repld"
unshare --mount mount -t proc -o hidepid=2 proc /proc || exit 77

REPLD=$TMP/repld
start_on_disk ext4 64m
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
P=$pools/p

# session_pid: of the one that has p open for writing.
session_pid() {
	ctl status --json "$T" | python3 -c 'import json, sys
for s in json.load(sys.stdin)["sessions"]:
    if s.get("pool") == "p" and s.get("mode") == "write": print(s["pid"])'
}

has_session() {
	[ -n "$(session_pid)" ]
}

configure "$T/p"
stay_lost
ok map "$TMP/p" $((4 * MIB))
ok open 1
ok put 0 65536 1
ok persist 0 0 65536
wait_for 10 has_session || fail "no session: $(ctl status --json "$T")"
kill -KILL "$(session_pid)" || fail "no session to kill"
wait_for 20 no_sessions || fail "the session stays"
ctl probe "$T/p" >"$TMP/out" 2>&1 || fail "what it left is not brought in: $(cat "$TMP/out")"
ctl restore "$T/p" "$TMP/back" >/dev/null 2>"$TMP/err" || fail "restore: $(cat "$TMP/err")"
cmp -s -n 65536 "$TMP/p" "$TMP/back" || lost "not what was acknowledged"
stop_api

start_api
configure "$T/p"
ok map "$TMP/p" $((4 * MIB))
ok open
ok put 65536 65536 2
ok persist 0 65536 65536
wait_for 10 has_session || fail "no session: $(ctl status --json "$T")"
ctl promote --force "$T/p" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
cmp -s -n 131072 "$TMP/p" "$P" || lost "the promoted pool lacks what was acknowledged"
ctl demote "$T/p" >/dev/null || fail "demote"
