# SPDX-License-Identifier: BSD-3-Clause
# A replica whose space takes longer to be had than its initiator waits comes into being all the same: what was made is
# there when that asks again, and is made once.
. "$(dirname "$0")/api_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
OP_TIMEOUT=2000
SPACE=$BUILD/tests/integration/slow_space.so
[ -e "$SPACE" ] || fail "no $SPACE"
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SPACE=4000 exec "%s" "$@"\n' "$SPACE" "$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
make_keys
start_serve
start_api
configure "$(pool p)"
ok set connect-timeout 2000
ok set lanes 2
ok map "$TMP/p" $MIB

opened() {
	api open 1
	case $STATUS in
	REPL_OK) return ;;
	REPL_E_TIMEOUT)
		# A busy machine may be slow with logins, too.
		[[ $TEXT =~ pool.create ]] || return 1
		[ "$WAITED" = 0 ] || fail "another opening has waited in vain: $TEXT"
		WAITED=1
		;;
	REPL_E_BUSY) grep -q "another session is making it" <<<"$TEXT" || fail "$TEXT" ;;
	*) fail "open: $STATUS $TEXT" ;;
	esac
	return 1
}

WAITED=0
wait_for 20 opened || fail "it is never there: $TEXT"
[ "$WAITED" = 1 ] || fail "its space has not taken long"
ok persist 0 0 4096
ok compare 0
same
ok close
[ -z "$(find "$TMP/serve/pools" -name '.tmp-*')" ] || fail "something is left: $(ls -a "$TMP/serve/pools")"
stop_api
