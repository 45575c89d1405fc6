# SPDX-License-Identifier: BSD-3-Clause
# A sparse pool of 1 TiB is made, opened, grown and opened again without anybody looking at its holes.
. "$(dirname "$0")/api_lib.sh"

TIB=$((1024 * 1024 * MIB))

# Little enough that nobody has touched much.
small() {
	local blocks

	blocks=$(stat -c %b "$1")
	[ "$blocks" -lt 400000 ] || fail "$1 takes $blocks blocks"
}

make_keys
start_serve
start_api
truncate -s $TIB "$TMP/local" 2>/dev/null || {
	echo "no file of 1 TiB in $TMP"
	exit 77
}
configure "$(pool p)"
ok set lanes 4
ok map "$TMP/local" $TIB
# Reading it would take hours: the bound is for a busy machine.
ok open 5
within 8000
ok put 0 100 1
ok put $((TIB / 2)) $MIB 2
ok put $((TIB - 4096)) 4096 3
ok persist 0 0 100
ok persist 1 $((TIB / 2)) $MIB
ok persist 2 $((TIB - 4096)) 4096
small "$TMP/serve/pools/p"
ok load 4 $((64 * MIB))
ok extend $((TIB + 1024 * MIB))
ok grow $((TIB + 1024 * MIB))
ok unload
ok put $((TIB + 1000 * MIB)) $MIB 4
ok persist 0 $((TIB + 1000 * MIB)) $MIB
ok close
ok open
within 8000
for off in 0 $((TIB / 2)) $((TIB - 4096)) $((TIB + 1000 * MIB)); do
	ok read 3 0 "$off" 4096
	same
done
ok close
small "$TMP/serve/pools/p"
small "$TMP/local"
stop_api
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
ctl verify "$TMP/local" "$T/p" >"$TMP/out" || lost "verify: $(cat "$TMP/out")"
ctl --json info "$T/p" >"$TMP/info" || fail "info"
[ "$(member sparse <"$TMP/info")" = True ] || fail "not sparse: $(cat "$TMP/info")"
ctl restore "$T/p" "$TMP/restored" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
[ "$(stat -c %s "$TMP/restored")" = $((TIB + 1024 * MIB)) ] || fail "size of the restored file"
small "$TMP/restored"
ctl verify "$TMP/restored" "$T/p" >"$TMP/out" || lost "verify: $(cat "$TMP/out")"
