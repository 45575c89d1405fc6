# SPDX-License-Identifier: BSD-3-Clause
# What this machine's limits and names forbid is refused before a replica is touched, or says what to mend: the next step,
# typed when that is done, ends well.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 65536 /dev/urandom >file
ctl sync file "$T/p" >out 2>&1 || fail "sync: $(cat out)"

# limited COMMAND...: no file may be written.
limited() (
	ulimit -f 0
	"$@"
)

# A limit on the size of files is no full disk.
head -c 65536 /dev/urandom >new
limited "$REPLCTL" --identity key --known-hosts known_hosts sync new "$T/new" </dev/null 2>&1 | cat >out
grep -q "new.repl: .*File too large: raise the limit, RLIMIT_FSIZE" out || fail "$(cat out)"
next=$(sed -n 's/^next: mend what the message names, then replctl \(.*\) (goes on where this ended)$/\1/p' out)
[ -n "$next" ] || fail "the next step: $(cat out)"
eval "ctl $next" >out 2>&1 || fail "replctl $next: $(cat out)"
ctl verify new "$T/new" >out 2>&1 || lost "verify: $(cat out)"
limited "$REPLCTL" --identity key --known-hosts known_hosts restore "$T/p" copy </dev/null 2>&1 | cat >out
grep -q "^next: mend what the message names, then repeat" out || fail "$(cat out)"

# A file beside which there is no name for its record.
long=$(printf '%0250d' 0)
head -c 65536 /dev/urandom >"$long"
ctl_fails 1 "File name too long" sync "$long" "$T/long"
grep -q "^next: .*shorter name" err || fail "$(cat err)"
ctl_fails 3 "" info "$T/long"
for name in "$(printf '%0243d' 0)" "$(printf '%0245d' 0)" "$(printf '%0300d' 0)"; do
	rc=0
	ctl restore "$T/p" "$name" >out 2>err || rc=$?
	if [ "$rc" -eq 0 ]; then
		[ -s "$name.repl" ] || fail "restored without its record: $(cat out err)"
	else
		grep -q "^next: .*shorter name" err || fail "$(cat err)"
		[ ! -e "$name" ] || fail "refused, and restored: $(cat err)"
	fi
done
# One beside which there is just one for the mark of what another program has made durable: that is taken and goes.
long=$(printf '%0243d' 0)
: >"$long.repl-missed"
ctl sync "$long" "$T/p" >out 2>err || fail "sync of a marked file: $(cat out err)"
[ ! -e "$long.repl-missed" ] || fail "the mark stays"
ctl_fails 1 "File name too long" status "./$(printf '%0300d' 0)"
grep -q "^next: .*shorter name" err || fail "$(cat err)"

# A size that is beyond all addresses: no limit of the target's that could be raised.
ctl_fails 1 "there are no addresses for so many on the target" grow "$T/p" --size 8388607T
grep -q "^next: choose a smaller size; or, if repld's address space is limited there" err || fail "$(cat err)"
ctl verify file "$T/p" >out 2>&1 || lost "verify: $(cat out)"

# Of another restore no session tells.
exec 8>"copy of p.restoring"
flock -x 8
ctl_fails 4 "another restore is at work" restore "$T/p" "copy of p"
exec 8>&-
next=$(sed -n 's/^next: wait until .*, then replctl //p' err)
[ -n "$next" ] || fail "the next step: $(cat err)"
eval "ctl $next" >out 2>&1 || fail "replctl $next: $(cat out)"
cmp -s file "copy of p" || lost "the restored file differs"

# One thing at a time: a host that is not known is not let in by a key.
: >empty
"$REPLCTL" --identity none --known-hosts empty list "$T" </dev/null 2>err
grep -q "^next: compare the fingerprint" err || fail "$(cat err)"
