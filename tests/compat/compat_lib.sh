# SPDX-License-Identifier: BSD-3-Clause
# compat_lib.sh - the harness of the tests of librpmem.so.1; sourced.
#
#   start_compat [LINE]     a target; librpmem.so.1 is found by PMDK and knows the test's key
#   target_set NAME LINE... the set file of that name on the target, as its admin writes it
#   local_set NAME          $TMP/local.set: 16 MiB in $TMP/part0, and a REPLICA of that name
#   pmdk COMMAND...         with librpmem.so.1 in reach, within two minutes
#   pmdk_fails PATTERN COMMAND...  it fails, and says so
#   make_pool               pmempool create of $TMP/local.set
#   fill COUNT, walk        pmemobj_fill on $TMP/local.set; prints count and checksum
#   target_run COMMAND...   without librpmem.so.1, as on the target
#   lose_and_sync FILLED    the local part is lost and had again from the replica
. "$(dirname "$0")/../integration/lib.sh"
FILL=$BUILD/tests/integration/pmemobj_fill
RPMEM_LOG_FILE=$TMP/rpmem.log
RPMEM_LOG_LEVEL=3
export RPMEM_LOG_FILE RPMEM_LOG_LEVEL
command -v pmempool >/dev/null || { echo "skipped: no pmempool (package pmdk-tools)"; exit 77; }
# PMDK's programs can't load one that was built with sanitizers; a test of our own sets OWN_PROGRAM.
if [ -z "${OWN_PROGRAM:-}" ] && nm -D "$BUILD/librpmem.so.1" | grep -q "__[at]san"; then
	echo "skipped: librpmem.so.1 is built with sanitizers"
	exit 77
fi

start_compat() {
	start_target "$@"
	POOLS=$TMP/serve/pools
	{
		echo "[repl]"
		echo "identity = $TMP/key"
		echo "known-hosts = $TMP/known_hosts"
	} >"$TMP/repl.conf"
}

target_set() {
	set_name=$1
	shift
	{
		echo PMEMPOOLSET
		for line in "$@"; do
			echo "$line"
		done
	} >"$POOLS/$set_name"
}

local_set() {
	printf 'PMEMPOOLSET\n16M %s\nREPLICA %s %s\n' "$TMP/part0" "$T" "$1" >"$TMP/local.set"
}

pmdk() {
	REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD timeout -k 5 120 "$@" </dev/null
}

pmdk_fails() {
	pattern=$1
	shift
	! pmdk "$@" >"$TMP/out" 2>&1 || fail "no error: $*"
	cat "$TMP/rpmem.log" >>"$TMP/out" 2>/dev/null
	grep -Eq -- "$pattern" "$TMP/out" || fail "no '$pattern' in: $(cat "$TMP/out")"
}

make_pool() {
	pmdk pmempool create obj --layout=test "$TMP/local.set" >"$TMP/out" 2>&1 ||
		fail "pmempool create: $(cat "$TMP/out")"
}

fill() {
	pmdk "$FILL" fill "$TMP/local.set" test "$1" 2>"$TMP/err" ||
		fail "fill: $(cat "$TMP/err")"
}

walk() {
	pmdk "$FILL" check "$TMP/local.set" test 2>"$TMP/err" || fail "walk: $(cat "$TMP/err")"
}

target_run() {
	timeout -k 5 120 "$@" </dev/null
}

lose_and_sync() {
	rm "$TMP/part0"
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
	found=$(walk) || exit 1
	[ "$found" = "$1" ] || fail "'$found' in place of '$1'"
}
