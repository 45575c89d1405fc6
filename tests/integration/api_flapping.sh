# SPDX-License-Identifier: BSD-3-Clause
# A replica that comes and goes more often than a history has entries makes no stranger of one that is away: that comes back
# by what it has missed, here and after another opening.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
FILE=$TMP/p
FLAPS=16
size=$((16 * MIB + 777))
configure "$(pool flaps)" "$(pool away)"
ok set lanes 1
ok set reconnect-min 10
ok set reconnect-max 50
# None of this is about deadlines: a slow machine is no loss.
ok set op-timeout 10000
ok map "$FILE" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
ok stat 1
before=$(field byte)
ctl pause "$FILE" "$(pool away)" >/dev/null || fail "pause"
wait_for 10 degraded 1 || fail "it is not away: $TEXT"

# flapped N: it was lost so often, and is back; each time makes a generation.
flapped() {
	established 0 && [ "$(field error)" -ge "$1" ]
}
ok stat 0
errors=$(field error)
for i in $(seq $FLAPS); do
	hurt kill
	wait_for 10 flapped $((errors + i)) || fail "loss $i: $TEXT"
	ok put $((i * 4096)) 4096 $((i + 1))
	ok persist 0 $((i * 4096)) 4096
done
ctl resume "$FILE" "$(pool away)" >/dev/null || fail "resume"
wait_for 20 established 1 || fail "it does not come back: $TEXT"
moved=$(($(field byte) - before))
[ "$moved" -lt $((size / 2)) ] || fail "$moved bytes were moved for what it has missed"
for i in 0 1; do
	ok compare $i
	same
done
ok close
equal "$FILE" "$TMP/serve/pools/flaps"
equal "$FILE" "$TMP/serve/pools/away"
