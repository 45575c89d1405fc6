# SPDX-License-Identifier: BSD-3-Clause
# A local replica on the target has what the pool has, whatever is killed; PMDK's tools read and mend the set there.
. "$(dirname "$0")/compat_lib.sh"
start_compat

# tool COMMAND...: pmempool on the target's set, without the initiator's library.
tool() {
	target_run pmempool "$@" "$POOLS/rem.set" >"$TMP/out" 2>&1 || fail "$*: $(cat "$TMP/out")"
	# Root's test has a target that is not root's, who would run it.
	[ "$(id -u)" != 0 ] || chown --reference="$POOLS/rem.set.repl" "$POOLS/p" "$POOLS/a" "$POOLS/b"
}

# The pool's bytes, behind the header, of the parts named.
bytes() {
	for part in "$@"; do
		tail -c +4097 "$POOLS/$part"
	done | head -c 16773120 | sha256sum
}

same() {
	[ "$(bytes p)" = "$(bytes a b)" ] || lost "$1: the local replica differs"
}

# The local part is gone, and had again from the replica.
synced() {
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
	found=$(walk) || exit 1
	[ "$found" = "$filled" ] || lost "'$found' in place of '$filled'"
}

target_set rem.set "16M $POOLS/p" REPLICA "9M $POOLS/a" "8M $POOLS/b"
local_set rem.set
make_pool
filled=$(fill 60) || exit 1
same "filled"
tool info
tool check
ctl info "$T/rem.set" | grep -q "^part  *a, .*local replica 1" || fail "$(ctl info "$T/rem.set")"
lose_and_sync "$filled"

# streams COUNT: the program writes, as process $pid; another hand has made the local replica differ.
streams() {
	: >"$TMP/stream"
	REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD \
		"$FILL" stream "$TMP/local.set" test "$1" >"$TMP/stream" 2>"$TMP/err" </dev/null &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 10 test -s "$TMP/stream" || fail "stream: $(cat "$TMP/err")"
	printf 'other' | dd of="$POOLS/b" bs=1 seek=5000000 conv=notrunc 2>/dev/null
}

# mended WHAT: what differs after that is made equal to the pool by who opens it next, before anything is written.
mended() {
	filled=$(fill 20) || exit 1
	same "after $1"
	grep -q "its local replicas differed from it" "$TMP/serve.log" || fail "$1: no word of it"
	emptied "$TMP/serve.log"
	tool check
}

# A target that is killed while the program writes: what was told is in both.
streams 2000
for child in $(pgrep -P "$SERVE_PID"); do
	for grandchild in $(pgrep -P "$child"); do
		kill -KILL "$grandchild"
	done
done
wait "$pid" || fail "the program ended with $?: $(cat "$TMP/err")"
mended "a kill of the target"

# So with the program itself, whose session ends by itself.
streams 6000
kill -KILL "$pid"
wait "$pid" 2>/dev/null
wait_for 10 grep -q "was open for writing and is not known" "$TMP/serve.log" || fail "the session does not end"
mended "a kill of the program"

# A part of the replica that is lost is said, and PMDK makes it anew.
rm "$POOLS/b"
pmdk_fails "local replica 1, which 'pmempool sync' of the set file makes anew at the target: .*'b' is missing" \
	"$FILL" check "$TMP/local.set" test
# Not by the initiator's, which would make all of the pool anew.
before="$(stat -c %i "$POOLS/p") $(bytes p)"
pmdk_fails "create: .*only a local replica of it is damaged" pmempool sync "$TMP/local.set"
[ "$(stat -c %i "$POOLS/p") $(bytes p)" = "$before" ] || lost "the pool is not what it was"
tool sync
filled=$(fill 20) || exit 1
same "after sync"
tool check

# One of another pool's, as of the wrong disk, is left where it is, whatever the initiator has done.
# (PMDK's rm begins with the local part.)
target_set other.set "16M $POOLS/o" REPLICA "9M $POOLS/oa" "8M $POOLS/ob"
printf 'PMEMPOOLSET\n16M %s\nREPLICA %s other.set\n' "$TMP/other0" "$T" >"$TMP/other.set"
pmdk pmempool create obj --layout=test "$TMP/other.set" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
for part in b p; do
	mv "$POOLS/$part" "$TMP/right"
	mv "$POOLS/o$(echo "$part" | tr -d p)" "$POOLS/$part"
	there=$(cd "$POOLS" && sha256sum p a b) || exit 1
	for command in "$FILL check $TMP/local.set test" "pmempool sync $TMP/local.set" "pmempool rm $TMP/local.set"; do
		: >"$TMP/rpmem.log"
		pmdk_fails "part '$part' belongs to another pool: is the right disk mounted" $command
		[ "$(cd "$POOLS" && sha256sum p a b)" = "$there" ] || lost "$command: not the files that were there"
	done
	mv "$POOLS/$part" "$POOLS/o$(echo "$part" | tr -d p)"
	mv "$TMP/right" "$POOLS/$part"
	synced
	same "with the right disk again"
done
pmdk pmempool rm "$TMP/other.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
rm "$POOLS/other.set"

# So with the pool's own part.
rm "$POOLS/p"
tool sync
found=$(walk) || exit 1
[ "$found" = "$filled" ] || lost "'$found' in place of '$filled'"
filled=$(fill 20) || exit 1
same "after sync of the pool"
tool check
lose_and_sync "$filled"

# It goes on alone, by the same set file, and has what the initiator lacks.
ctl promote "$T/rem.set" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
found=$(target_run "$FILL" check "$POOLS/rem.set" test) || lost "the set does not open"
[ "$found" = "$filled" ] || lost "'$found' in place of '$filled'"
tool check
filled=$(target_run "$FILL" fill "$POOLS/rem.set" test 10) || fail "it is not gone on with"
tool check

# Where a part of its local replica is lost, too, nothing that the initiator has it done takes it away.
rm "$POOLS/b"
only=$(sha256sum "$POOLS/p" "$POOLS/a") || exit 1
unharmed() {
	[ "$(sha256sum "$POOLS/p" "$POOLS/a")" = "$only" ] || lost "$1: the primary is not what it was"
}
pmdk_fails "rem.set.*it is the primary now" "$FILL" check "$TMP/local.set" test
unharmed "an opening"
: >"$TMP/rpmem.log"
pmdk_fails "rem.set.*it is the primary now" pmempool sync "$TMP/local.set"
unharmed "sync"
: >"$TMP/rpmem.log"
pmdk_fails "remove: .*rem.set.*it is the primary now" pmempool rm "$TMP/local.set"
unharmed "rm"
# It tells of no error then.
pmdk pmempool rm --force "$TMP/local.set" >"$TMP/out" 2>&1
unharmed "rm --force"
tool sync
rm -f "$TMP/part0"
ctl demote "$T/rem.set" >"$TMP/out" 2>&1 || fail "demote: $(cat "$TMP/out")"
synced

pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
[ "$(ls -A "$POOLS")" = "$(printf '.repld\nrem.set')" ] || fail "left: $(ls -A "$POOLS")"
