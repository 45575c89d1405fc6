# SPDX-License-Identifier: BSD-3-Clause
# On a disk no position is kept of a queued pool with local replicas: its target's log says so, as RECOVERY.md has it, and newest
# chooses none.
API_DISK=1
. "$(dirname "$0")/laggard_lib.sh"
[ "$(stat -f -c %T "$TMP")" != tmpfs ] || exit 77
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
size=$((4 * MIB))
for pool in a b; do
	for dir in d r; do
		mkdir "$TMP/serve/pools/$pool$dir"
		[ "$(id -u)" != 0 ] || chown --reference="$TMP/serve/pools" "$TMP/serve/pools/$pool$dir"
	done
	printf 'PMEMPOOLSET\nOPTION NOHDRS\n8M %sd\nREPLICA\n8M %sr\n' $pool $pool >"$TMP/serve/pools/$pool"
done
start_api
configure "$(pool a)" "$(pool b)"
ok set lanes 1
ok set ack any
ok map "$TMP/p" $size
fill 1
grep -q "no position record: .*round log" "$TMP/serve.log" || fail "the log does not say it"
# shellcheck disable=SC2046
signalled KILL $(sessions) "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
ctl_fails 4 "one of them tells no position" newest "$T/a" "$T/b"
