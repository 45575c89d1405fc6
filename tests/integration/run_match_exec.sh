#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A command of ssh's config, for which libssh forks while a pool is opened or a replica comes back, keeps none of them from
# that: nobody waits for locks that are held until the login has ended.
. "$(dirname "$0")/run_lib.sh"
# libssh has the home directory from the user database: the test's is bound over it.
home=$(getent passwd "$USER_NAME" | cut -d : -f 6)
[ "$(id -u)" -eq 0 ] && [ -d "$home" ] && unshare -m mount --bind "$HOME" "$home" 2>/dev/null || exit 77
start_target
printf '#!/bin/sh\necho asked >>"%s"\n' "$TMP/asked" >"$TMP/command"
chmod 755 "$TMP/command"
printf 'Match exec "%s"\n Compression no\n' "$TMP/command" >"$HOME/.ssh/config"
# A new process: bash looks replctl up by what it is to run.
printf '#!/bin/sh\nmount --bind "%s" "%s" && exec "$@"\n' "$HOME" "$home" >"$TMP/inside"
printf '#!/bin/sh\nexec unshare -m sh "%s" "%s" "$@"\n' "$TMP/inside" "$REPLCTL" >"$TMP/replctl"
chmod 755 "$TMP/replctl"

plain=$REPLCTL
REPLCTL=$TMP/replctl
with asks "--replica $T/asks --set on-loss=block --set block-timeout=8000 --set connect-timeout=4000 --set reconnect-min=100" until
REPLCTL=$plain
wait_for 4 grep -q '^2$' "$TMP/asks.out" || fail "it does not begin: $(cat "$TMP/asks.out")"
[ -s "$TMP/asked" ] || fail "nobody was asked"
! grep -q "NOT REPLICATED" "$TMP/asks.out" || fail "it says: $(cat "$TMP/asks.out")"

asked=$(wc -l <"$TMP/asked")
session=$(sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1)
signalled KILL "$session"
lines=$(grep -c '^[0-9]' "$TMP/asks.out")
goes_on() {
	[ "$(grep -c '^[0-9]' "$TMP/asks.out")" -gt $((lines + 10)) ]
}
wait_for 6 goes_on || fail "it does not go on: $(tail -n 5 "$TMP/asks.out")"
[ "$(wc -l <"$TMP/asked")" -gt "$asked" ] || fail "nobody was asked when it came back"
touch "$TMP/asks.enough"
wait "$PID" || fail "it ends with $?: $(tail -n 5 "$TMP/asks.out")"
wait_for 10 pool_idle asks || fail "it is still open"
cmp "$TMP/asks" "$TMP/serve/pools/asks" >&2 || lost "they differ"
