# SPDX-License-Identifier: BSD-3-Clause
# Pools are made, listed, shown and removed; nothing is removed without a yes.
. "$(dirname "$0")/lib.sh"
start_target

# What opens no lane does not wait for libfabric, which takes 0.2 s to be loaded.
(export LD_DEBUG=files LD_DEBUG_OUTPUT="$TMP/loaded" && ctl list "$T" >/dev/null) || fail "list"
grep -q libssh "$TMP"/loaded.* || fail "what is loaded is not seen"
grep -q libfabric "$TMP"/loaded.* && fail "libfabric is loaded for a list"
[ "$(ctl list "$T")" = "no pools" ] || fail "an empty target"
[ "$(ctl list --json "$T" | member pools)" = "[]" ] || fail "an empty target in JSON"
ctl create "$T/a" --size 64K >/dev/null || fail "create"
ctl create --size 1M "$T/eu/b.pool" >/dev/null || fail "create below a directory"
ctl list "$T" | grep -q '^eu/b.pool  *1.0 MiB  up-to-date' || fail "list: $(ctl list "$T")"
[ "$(ctl list --json "$T" | member pools.1.size)" = 1048576 ] || fail "size in JSON"
ctl info "$T/a" | grep -q '^size  *64.0 KiB (65536 bytes)$' || fail "info"
ctl info "$T/a" | grep -q sparse && fail "info of a pool that has its space"
ctl create "$T/s" --size 1M --sparse >/dev/null || fail "create --sparse"
ctl info "$T/s" | grep -q '^size .*, sparse' || fail "info of a sparse pool"
ctl remove --force "$T/s" >/dev/null || fail "remove of a sparse pool"

# Where there is not enough space for a file that has not got all of its own either.
truncate -s 8T "$TMP/holes" || fail "a file of holes"
ctl sync "$TMP/holes" "$T/s" >"$TMP/out" 2>&1 && fail "sync of a file that has no room there"
next=$(sed -n 's/^next: .*; or replctl \(.*\) (.*/\1/p' "$TMP/out")
[ "$next" = "create $T/s --from $TMP/holes --sparse" ] || fail "the way out: $(cat "$TMP/out")"
# It is one, but for the time that it takes to look at so many holes.
truncate -s 64M "$TMP/holes"
# shellcheck disable=SC2086
ctl $next >/dev/null 2>&1 || fail "$next"
ctl remove --force "$T/s" >/dev/null || fail "remove of what was made so"
ctl info "$T/a" | grep -q 'never written' || fail "generation of a new pool"
[ "$(ctl --json info "$T/a" | member state)" = up-to-date ] || fail "state in JSON"

ctl_fails 4 "next: replctl info $T/a" create "$T/a" --size 64K
ctl_fails 2 "not a positive number of bytes" create "$T/c" --size 0
ctl_fails 1 "space|bytes" create "$T/c" --size 4096T
ctl_fails 2 "begins with a dot" create "$T/../c" --size 64K
ctl_fails 3 "next: replctl list $T" info "$T/c"
ctl_fails 3 "not found" remove --force "$T/c"

ctl_fails 4 "next: .*replctl remove --force $T/a" remove "$T/a"
ctl remove --dry-run "$T/a" | grep -q "^would remove" || fail "dry run"
ctl info "$T/a" >/dev/null || fail "a refused remove or a dry run has removed"
hold a write
ctl_fails 4 "next: " remove --force "$T/a"
[ "$(ctl info "$T/a" --json | member writer_open)" = True ] || fail "writer is not told"
stop "$HOLD_PID"
wait_for 20 ctl remove --force "$T/a" || fail "remove"
ctl_fails 3 "not found" info "$T/a"

# A pool whose metadata are lost is listed with the whole reason. It can be removed, and is so made anew.
ctl create "$T/d" --size 64K >/dev/null || fail "create a pool to damage"
head -c 8192 /dev/zero >"$TMP/serve/pools/d.repl"
ctl list "$T" | grep -q "make the replica anew$" || fail "list of a damaged pool: $(ctl list "$T")"
ctl_fails 1 "^next: .*replctl remove $T/d" info "$T/d"
ctl_fails 4 "next: .*replctl remove --force $T/d" remove "$T/d"
grep -q "both copies are damaged" "$TMP/err" || fail "remove does not say what it is about"
ctl remove --dry-run --json "$T/d" 2>/dev/null | member removed | grep -qx False || fail "dry run of a damaged pool"
ctl remove --force "$T/d" | grep -q "^removed .* (damaged)$" || fail "remove of a damaged pool"
ctl_fails 3 "not found" info "$T/d"
ctl create "$T/d" --size 64K >/dev/null || fail "a damaged pool made anew"

# The removal of a pool set that has failed half way is gone on with: there is no pool that could be asked about.
pools=$TMP/serve/pools
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M stuck/s0\n2M s1\n' >"$pools/set"
ctl create "$T/set" --size 4M >/dev/null || fail "create of a set"
chmod 555 "$pools/stuck"
ctl_fails 4 "remove part 'stuck/s0'" remove --force "$T/set"
[ -e "$pools/stuck/s0" ] && [ ! -e "$pools/s1" ] || fail "no half: $(ls -R "$pools")"
ctl_fails 3 "its parts are not" info "$T/set"
ctl_fails 4 "remove part 'stuck/s0'" remove "$T/set"
chmod 755 "$pools/stuck"
ctl_fails 3 "its parts are not" remove --dry-run "$T/set"
[ -e "$pools/stuck/s0" ] || fail "a dry run has removed"
ctl remove "$T/set" | grep -q "^removed $T/set (what was left of it)$" || fail "the rest of a removal"
[ ! -e "$pools/stuck" ] && [ ! -e "$pools/set.repl" ] || fail "left: $(ls -R "$pools")"
ctl_fails 3 "its parts are not" remove "$T/set"

# Where nothing of it could be removed it is the pool that it was, and what was promoted is made over by nobody.
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M s1\n2M stuck/s0\n' >"$pools/set"
ctl create "$T/set" --size 4M >/dev/null && ctl promote --force "$T/set" >/dev/null || fail "a promoted set"
chmod 555 "$pools/stuck"
ctl_fails 4 "remove part 'stuck/s0'" remove --force "$T/set"
[ "$(ctl info --json "$T/set" | member primary)" = True ] || fail "no primary any more"
ctl_fails 4 "already exists" create "$T/set" --size 4M
[ -e "$pools/s1" ] && [ -e "$pools/stuck/s0" ] || lost "a part is gone"
chmod 755 "$pools/stuck"
ctl remove --force "$T/set" >/dev/null || fail "remove of a promoted set"
[ ! -e "$pools/s1" ] && [ ! -e "$pools/set.repl" ] || fail "left: $(ls -R "$pools")"
rm "$pools/set"

# Of one whose first copy was cut off each command says so, and what comes next.
ctl create "$T/e" --size 64K >/dev/null || fail "create"
ctl_fails 4 "has never been written" promote "$T/e"
{
	echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
	echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"e","mode":"write"}}'
	echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":{"state":"inconsistent"}}'
	sleep 1
} | client cat "$T" >"$TMP/out" || fail "no session: $(cat "$TMP/out")"
ctl info "$T/e" >"$TMP/out" || fail "info"
grep -q '^state *inconsistent' "$TMP/out" && grep -q '^generation *none: its first copy has not ended' "$TMP/out" ||
	fail "info: $(cat "$TMP/out")"
ctl_fails 4 "inconsistent: its first copy has begun and not ended" promote "$T/e"
grep -q "^next: .*replctl sync FILE $T/e.*replctl promote --force $T/e" "$TMP/err" || fail "$(cat "$TMP/err")"
ctl_fails 4 "inconsistent: its first copy has begun and not ended" restore "$T/e" "$TMP/file"

# The file that tells of a pool set's parts is no pool, whoever takes it for one has no copy of its data, nor a set any more.
printf 'PMEMPOOLSET\n8M %s/part\n' "$TMP" >"$TMP/objects.set"
cp "$TMP/objects.set" "$TMP/set.before"
head -c 65536 /dev/urandom >"$TMP/data"
ctl create "$T/w" --from "$TMP/data" >/dev/null 2>&1 || fail "create of data"
for args in "sync $TMP/objects.set $T/set" "sync --dry-run $TMP/objects.set $T/set" \
	"create $T/set --from $TMP/objects.set" "verify $TMP/objects.set $T/a" \
	"resolve --discard local $TMP/objects.set $T/a" "resolve --discard replica $TMP/objects.set $T/a" \
	"restore $T/w $TMP/objects.set" "restore --dry-run --force $T/w $TMP/objects.set" \
	"restore --force $T/w $TMP/objects.set"; do
	# shellcheck disable=SC2086
	ctl $args >"$TMP/out" 2>"$TMP/err"
	status=$?
	[ "$status" -eq 2 ] || lost "$args: exit $status: $(cat "$TMP/out" "$TMP/err")"
	grep -q "objects.set is a pool set file, not a pool: .*librpmem(7)" "$TMP/err" ||
		fail "$args: $(cat "$TMP/err")"
done
ctl_fails 3 "not found" info "$T/set"
cmp "$TMP/objects.set" "$TMP/set.before" || lost "the set file was replaced"
# What only begins like one, and is longer than any, is data.
truncate -s 65536 "$TMP/objects.set"
ctl sync "$TMP/objects.set" "$T/set" >/dev/null 2>&1 || fail "sync of data that begin like a set file"
