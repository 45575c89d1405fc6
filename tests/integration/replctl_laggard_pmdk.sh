# SPDX-License-Identifier: BSD-3-Clause
# A pool of PMDK's whose shutdown state is reset when it is restored from a replica that lagged does not overwrite the one that had got further either.
. "$(dirname "$0")/laggard_lib.sh"
command -v pmempool >/dev/null || { echo "skipped: no pmempool (package pmdk-tools)"; exit 77; }
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

set_up() {
	start_api
	configure_lagging "$(pool a)" "$(pool b)"
	ok map "$1" $size
}

pmempool create obj --layout=bound --size=40M "$TMP/p" || fail "pmempool create"
"$BUILD/tests/integration/pmdk_bind" "$TMP/p" || fail "pmdk_bind"
set_up "$TMP/p"
ok open 1
ok put $((4 * MIB)) $MIB 1
ok persist 0 $((4 * MIB)) $MIB
wait_for 10 follows 0 && wait_for 10 follows 1 || fail "they do not follow"
leave_behind b
cmp -s "$TMP/p" "$TMP/serve/pools/b" && fail "b has all"
equal "$TMP/p" "$TMP/serve/pools/a"

ctl restore "$T/b" "$TMP/lagged" >"$TMP/out" 2>&1 || fail "restore of b"
grep -q "PMDK shutdown state.* is reset" "$TMP/out" || fail "restore says: $(cat "$TMP/out")"
set_up "$TMP/lagged"
refused REPL_E_DIVERGED "^[^ ]*/a: the replica is newer.*replctl resolve --discard local" open
stop_api
ctl_fails 4 "the replica is newer" sync "$TMP/lagged" "$T/a"
equal "$TMP/p" "$TMP/serve/pools/a"

# The reset state gets to the one that it was restored from, as ever.
ctl sync "$TMP/lagged" "$T/b" >"$TMP/out" 2>&1 || fail "sync to b: $(cat "$TMP/out")"
equal "$TMP/lagged" "$TMP/serve/pools/b"

# One that is outdated is not to be overwritten by whoever descends from what it has a part of, nor one in which a copy was
# cut off by what has no record: its own copy, which differs from it by that state, is none that it follows. It is said
# how it does.
pmempool create obj --layout=bound --size=8M "$TMP/bound" || fail "pmempool create"
"$BUILD/tests/integration/pmdk_bind" "$TMP/bound" || fail "pmdk_bind"

# told COMMAND ARG...: it resets the state, and says what is to follow.
told() {
	ctl "$@" >"$TMP/out" 2>&1 || fail "$*: $(cat "$TMP/out")"
	grep -q "PMDK shutdown state.* is reset" "$TMP/out" || fail "$* says: $(cat "$TMP/out")"
	sed -n 's/^next  *replctl //p' "$TMP/out" | grep -qx "$next" || fail "$*: no $next: $(cat "$TMP/out")"
}
# opens: the program has its replica.
opens() {
	start_api
	configure "$(pool "$state")"
	ok map "$file" $((8 * MIB))
	"$@" open
}
for state in outdated inconsistent; do
	file=$TMP/$state
	ctl sync "$TMP/bound" "$T/$state" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
	mark_pool $state $state
	next="resolve --discard replica $file $T/$state"
	[ $state = outdated ] || next="sync --force $file $T/$state"
	ctl restore --force --json "$T/$state" "$file" >"$TMP/json" 2>"$TMP/err" || fail "restore: $(cat "$TMP/err")"
	[ "$(member next <"$TMP/json")" = "replctl $next" ] || fail "no $next: $(cat "$TMP/json")"
	rm -f "$file" "$file.repl"
	told restore --force "$T/$state" "$file"
	[ $state != outdated ] || told resolve --force --discard local "$file" "$T/$state"
	opens refused REPL_E_DIVERGED "/$state: .*nothing was changed"
	stop_api
	# shellcheck disable=SC2086
	ctl ${next%% *} --force ${next#* } >"$TMP/out" 2>&1 || fail "$next: $(cat "$TMP/out")"
	opens ok
	ok close
	stop_api
	equal "$file" "$TMP/serve/pools/$state"
done
