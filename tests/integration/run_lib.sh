# SPDX-License-Identifier: BSD-3-Clause
# For the tests of unmodified programs: replctl run on a target of the test's own.
. "$(dirname "$0")/lib.sh"
REPLCTL=${REPLCTL:-$BUILD/replctl}
FILL=$BUILD/tests/integration/pmemobj_fill
command -v pmempool >/dev/null || { echo "skipped: no pmempool (package pmdk-tools)"; exit 77; }

# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS

# The thread sanitizer's runtime maps memory by our mmap to look for symbols, before it is there itself.
if nm -D "$BUILD/librepl-preload.so" | grep -q __tsan && [[ ${TSAN_OPTIONS-} != *symbolize=0* ]]; then
	echo "skipped: the thread sanitizer can't begin below librepl-preload.so, but with symbolize=0"
	exit 77
fi

# run POOL-FILE POOL PROGRAM ARG...: becomes the program: call it in a subshell or by "&".
run() {
	file=$1
	name=$2
	shift 2
	exec "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run \
		--set on-loss="${ON_LOSS:-fail}" ${LANES:+--set "lanes=$LANES"} --replica "$T/$name" --pool "$file" -- "$@"
}

# pool_idle POOL: no session has it open any more.
pool_idle() {
	! ctl info "$T/$1" | grep -q '^writer .*(has it open)'
}

# restore_pool POOL FILE: the local file is lost, the replica gives it back.
restore_pool() {
	wait_for 20 pool_idle "$1" || fail "the writer of $1 is still there"
	rm -f "$2" "$2.repl"
	ctl restore "$T/$1" "$2" >"$TMP/restore.log" 2>&1 || fail "restore: $(cat "$TMP/restore.log")"
}

# expect_count FILE LAYOUT LEAST: PMDK opens it, its objects are whole, and as many as that.
expect_count() {
	timeout 20 pmempool check "$1" >"$TMP/check.log" 2>&1 || lost "pmempool check: $(cat "$TMP/check.log")"
	found=$(timeout 20 "$FILL" check "$1" "$2" 2>&1) || lost "its program says: $found"
	[ "${found%% *}" -ge "$3" ] || lost "$3 objects were acknowledged, ${found%% *} are there"
}

# odd MODE [PATTERN [FILE]]: pmem_odd runs, says nothing but what matches, and its pool is replicated. ODD_S: it may take
# longer than others do.
odd() {
	file=${3:-$TMP/$1}
	(run "$file" "$1" timeout -k 5 "${ODD_S:-40}" "$BUILD/tests/integration/pmem_odd" "$1" "$file") >"$TMP/out" 2>&1 ||
		fail "$1 ends with $?: $(cat "$TMP/out")"
	[ "$(cat "$TMP/out")" = "${2-}" ] || [[ ${2-} && $(cat "$TMP/out") =~ $2 ]] ||
		fail "$1 says: $(cat "$TMP/out")"
	wait_for 10 pool_idle "$1" || fail "$1 is still open"
	ctl verify "$file" "$T/$1" >"$TMP/verify.log" 2>&1 ||
		lost "$1: $(cat "$TMP/verify.log" "$TMP/out")"
	tr -d '\0' <"$TMP/serve/pools/$1" | grep -q . || fail "$1 holds nothing"
}

# with POOL "OPTION..." MODE: pmem_write, its words in $TMP/POOL.out; $PID
with() {
	# shellcheck disable=SC2086
	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run $2 --pool "$TMP/$1" -- \
		"$BUILD/tests/integration/pmem_write" "$3" "$TMP/$1" >"$TMP/$1.out" 2>&1 &
	PID=$!
	PIDS="$PIDS $PID"
}

# told POOL COUNT PATTERN
told() {
	[ "$(grep -Ec "preload.*/$1: $3" "$TMP/$1.out")" -eq "$2" ] || fail "not $2 times '$3': $(grep -v '^[0-9]' "$TMP/$1.out")"
}
