# SPDX-License-Identifier: BSD-3-Clause
# Who asks a running program why a replica is not well gets the reason that fits, and a next step that works as it stands.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
cd "$TMP" || exit 1
FILE=$TMP/pool
R=$(pool c)
T=${R%/*}

replctl() {
	ctl "$@"
}

# away: the program goes on without c.
away() {
	ctl pause "$FILE" "$R" >/dev/null || fail "pause"
}

# told REASON: by the program of c, which is there again; $NEXT.
told() {
	ctl resume "$FILE" "$R" >/dev/null || fail "resume"
	wait_for 20 reason_is "$1" || fail "not $1: $(ctl why "$FILE")"
	NEXT=$(sed -n 's/^next *//p' why)
}

reason_is() {
	ctl why "$FILE" | sed -n '/^replica .*\/c$/,$p' >why
	grep -q "^reason *$1:" why
}

# typed DUE COMMAND: replctl, as the next step says it.
typed() {
	(eval "$2") >out 2>err
	[ $? -eq "$1" ] || fail "$2: $(cat out err)"
}

# Another pool in its place: not one that has a past in common, which could be resolved.
configure "$(pool a)" "$R"
ok map "$FILE" "$MIB"
ok put 0 "$MIB" 1
ok open 1
ok persist 0 0 "$MIB"
away
ctl remove -f "$R" >/dev/null || fail "remove"
head -c "$MIB" /dev/urandom >other
ctl sync other "$R" >/dev/null 2>err || fail "sync: $(cat err)"
told unrelated
ok close
typed 6 "${NEXT##*has ended: }"
grep -q "^next: replctl verify .*replctl sync --force" err || fail "no choice: $(cat err)"
ctl remove -f "$R" >/dev/null || fail "remove"

# A snapshot of this machine has gone on: what it wrote is not to be discarded.
ok open 1
away
cp pool snapshot && cp pool.repl snapshot.repl
change snapshot 5000
ctl sync snapshot "$R" >/dev/null 2>err || fail "sync: $(cat err)"
told behind
ok close
typed 0 "${NEXT#*: }"
equal snapshot pool
ok map "$FILE" "$MIB"
ok open 0
ctl wait "$FILE" --timeout 20 >/dev/null || fail "not its replica: $(ctl status "$FILE")"

# This program does not make pools now: the one that is missing is made as the next step says.
away
ctl remove -f "$R" >/dev/null || fail "remove"
told pool-missing
NEXT=${NEXT#*a new one where the program runs: }
typed 0 "${NEXT%; else*}"
ctl wait "$FILE" --timeout 20 >/dev/null || fail "not made anew: $(ctl status "$FILE")"

# A key file of ours that is gone is nothing that the target has refused.
away
mv key key.away
told local
mv key.away key
typed 5 "${NEXT##*says, then }"
ctl_fails 8 "no private key" list "$T" --identity pool
grep -q "^next: name a private key" err || fail "$(cat err)"

# Who has mended what the target refuses, or promoted, has the program try it again: it would not by itself.
away
chmod 0 "$TMP/serve/pools/c"
told refused
chmod 600 "$TMP/serve/pools/c"
typed 0 "${NEXT##*says, then }"
ctl wait "$FILE" --timeout 20 >/dev/null || fail "not back: $(ctl status "$FILE")"
away
ctl promote --force "$R" >/dev/null 2>err || fail "promote: $(cat err)"
told promoted
typed 0 "$(sed 's/.* again: //; s/; then, .*: /; /' <<<"$NEXT")"
wait_for 20 reason_is diverged || fail "no further step: $(ctl status "$FILE")"

# One of another size.
away
ctl remove -f "$R" >/dev/null || fail "remove"
ctl create "$R" --size 2M >/dev/null || fail "create"
told size
NEXT=${NEXT##*where nothing in it counts: }
NEXT=${NEXT%; of a pool set*}
typed 0 "${NEXT/remove/remove -f}"
wait_for 20 reason_is pool-missing || fail "not removed: $(ctl why "$FILE")"
ok close
stop_api
