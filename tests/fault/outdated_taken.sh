# SPDX-License-Identifier: BSD-3-Clause
# An outdated copy is taken by force only, and passes for no generation that others have whole; no program goes on with it.
. "$(dirname "$0")/fault.sh"
start_target
T=$target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >file
ctl sync file "$T/p" >/dev/null || fail "sync"
mark() { # STATE [CHAIN], of p
	{
		hello
		request pool.open '{"name":"p","mode":"write"}'
		request pool.mark '{"state":"'"$1"'"'"${2-}"'}'
		request pool.close
		request bye
	} | raw_session >out || fail "the session failed"
	[ "$(ctl info --json "$T/p" | member state)" = "$1" ] || fail "not $1: $(cat out)"
}
mark outdated

chain() { # of a sidecar: the current identifier, or the history
	dd if="$1" bs=1 skip="$2" count="$3" status=none
}
ctl_fails 4 "it misses updates" restore "$T/p" taken
ctl restore --force "$T/p" taken >/dev/null 2>&1 || fail "restore --force"
cmp -s file taken || lost "the data differ"
cmp -s <(chain taken.repl 224 16) <(chain serve/pools/p.repl 224 16) &&
	fail "a part passes for the generation"
cmp -s <(chain taken.repl 240 240) <(chain serve/pools/p.repl 240 240) ||
	lost "the ancestors are not kept"

# In place, as a program's own: refused before anything is asked of a target.
cp serve/pools/p own
cp serve/pools/p.repl own.repl
timeout 20 "$LEDGER" write "$TMP/own" "$T/q" identity="$TMP/key" \
	known-hosts="$TMP/known_hosts" >own.out 2>&1 && fail "a program goes on with it"
grep -q "the local file is outdated" own.out || fail "no reason: $(cat own.out)"
ctl_fails 3 "not found" info "$T/q"

# Nor is it copied over one that has all of the same generation, or to a new one.
ctl sync file "$T/q" >/dev/null || fail "sync to q"
generation=$(ctl info --json "$T/q" | member generation)
for state in outdated inconsistent; do
	mark "$state" ',"generation":"'"$generation"'","history":[]'
	for command in "sync serve/pools/p $T/q" "create $T/r --from serve/pools/p" \
		"resolve --force --discard replica serve/pools/p $T/q"; do
		# shellcheck disable=SC2086
		ctl_fails 4 "local file is $state.*replctl restore" $command
	done
	cmp -s file serve/pools/q || lost "$state: q has lost what it had"
	ctl_fails 4 "nothing to resolve" resolve --force --discard local serve/pools/p "$T/q"
	grep -q "^next: replctl restore --force $T/q serve/pools/p" err || fail "$(cat err)"
done
ctl_fails 3 "not found" info "$T/r"

# Force that is given so that a file is replaced does not have a better one replaced.
cp file own
cp file.repl own.repl
for state in outdated inconsistent; do
	mark "$state" ',"generation":"'"$generation"'","history":[]'
	ctl_fails 4 "own exists" restore "$T/p" own
	ctl_fails 4 "own is not replaced by .*not by force" restore --force "$T/p" own
	cmp -s file own || lost "$state: the file is replaced"
done
ctl remove --force "$T/p" >/dev/null || fail "remove"
ctl sync own "$T/p" >/dev/null 2>err || fail "sync: $(cat err)"
head -c 4096 /dev/urandom | dd of=own conv=notrunc status=none
ctl sync own "$T/q" >/dev/null || fail "sync to q"
ctl_fails 4 "own is not replaced by .*it lacks what the file" restore --force "$T/p" own
next=$(sed -n 's/^next: .*to keep it: \(mv .*\); replctl \(restore .*\)/\1; ctl \2/p' err)
eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
cmp -s own serve/pools/p || lost "it is not restored"
cmp -s own.old serve/pools/q || lost "the file is not kept"
ctl sync own.old "$T/q" >/dev/null || fail "nor its record"
