# SPDX-License-Identifier: BSD-3-Clause
# A program that has given up rights since it opened its replicas goes on when one is lost, and is told what keeps that one
# away; what does not need them comes back.
. "$(dirname "$0")/api_lib.sh"
# The leak sanitizer needs /proc at the end of the program.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
make_keys
start_serve

# opened NAME [LANES], and then no longer what it was.
opened() {
	start_api
	configure "$(pool "$1")"
	ok set lanes "${2:-1}"
	ok set reconnect-max 500
	ok map "$TMP/$1" $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
}

# lose: the replica's session is killed, and a call notices it.
lose() {
	hurt kill
	ok put 0 4096 2
	ok persist 0 0 4096
}

reason() {
	api stat 0
	[[ $TEXT =~ reason=.*$1 ]]
}

# kept_away PATTERN
kept_away() {
	wait_for 20 reason "$1" || fail "no '$1' in: $TEXT"
	ok put 0 4096 3
	ok persist 0 0 4096
}

comes_back() {
	wait_for 20 established 0 || fail "it does not come back: $TEXT"
	ok compare 0
	same
}

done_with() {
	ok close
	stop_api
	wait_for 20 no_sessions || fail "sessions stay"
}

# System calls that a filter answers: those that have another way, and one that has none.
opened filtered
ok deny 38 clone3 getrandom sched_getaffinity
lose
comes_back
ok deny 1 socket
lose
kept_away "may not connect there: Operation not permitted"
done_with

opened few
lose
comes_back
prlimit --pid "$(api_child)" --nofile=3:
lose
kept_away "too many open files: raise the limit, RLIMIT_NOFILE"
prlimit --pid "$(api_child)" --nofile=1024:
comes_back
done_with

# Enough to log in, and not for all lanes.
opened lanes 16
lose
comes_back
descriptors=(/proc/"$(api_child)"/fd/*)
prlimit --pid "$(api_child)" --nofile=$((${#descriptors[@]} - 50)):
lose
kept_away "RLIMIT_NOFILE, which is [0-9]+: a replica with 16 lanes takes"
ctl why "$TMP/lanes" >"$TMP/out"
grep -q "^reason  *local:" "$TMP/out" || fail "why: $(cat "$TMP/out")"
prlimit --pid "$(api_child)" --nofile=1024:
comes_back
done_with

[ "$(id -u)" -eq 0 ] || { left_out "to give up root's rights needs root"; exit; }
user=$(id -u nobody)

# processes LIMIT: of the program, as the user that it has become.
processes() {
	setpriv --reuid="$user" --regid="$user" --clear-groups \
		prlimit --pid "$(api_child)" --nproc="$1:" || fail "prlimit"
}

opened user
chmod 600 "$TMP/known_hosts" "$TMP/key"
ok become "$user"
lose
kept_away "can't be looked for: .*known_hosts, which user $user has to read.*: Permission denied"
chmod 644 "$TMP/known_hosts"
kept_away "key file '$TMP/key': Permission denied"
chmod 644 "$TMP/key"
comes_back
processes 0
lose
kept_away "no thread to connect to .*, raise the limit of processes"
processes "$(ulimit -u)"
comes_back
done_with

# A file that it has mapped before, and whose name it can't look up any more, is not taken for memory of no file, of which no
# record is kept and nothing is locked.
mkdir -m 700 "$TMP/closed"
mkdir -m 777 "$TMP/records"
start_api
configure "$(pool closed)"
ok map "$TMP/closed/pool" $MIB
ok become "$user"
refused REPL_E_FAILED "can't tell which file is mapped.*'pool-file'.*$TMP/closed/pool: Permission denied" open 1
[ ! -e "$TMP/serve/pools/closed" ] || fail "the pool was made"
ok set pool-file "$TMP/records/closed"
ok open 1
[ -s "$TMP/records/closed.repl" ] || fail "no record is kept"
done_with

opened root
mkdir "$TMP/empty"
ok root "$TMP/empty"
lose
kept_away "known_hosts, which does not exist"
done_with
