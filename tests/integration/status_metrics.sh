# SPDX-License-Identifier: BSD-3-Clause
# What somebody has put where metrics are written first, a FIFO or a link, neither holds up the handle nor leads elsewhere.
# Metrics that can't be written are not those of an earlier time. The man page has the name of each.
. "$(dirname "$0")/api_lib.sh"

make_keys
start_serve
start_api
configure "$(pool a)"
ok set metrics-file "$TMP/metrics"
ok map "$TMP/pool" $((4 * MIB))
temp=$TMP/metrics.$(api_child).tmp
written() {
	grep -q "^repl_flushes_total" "$TMP/metrics"
}
echo precious >"$TMP/victim"
for way in mkfifo "ln -s $TMP/victim"; do
	$way "$temp" || fail "$way"
	ok open 1
	wait_for 10 written || fail "$way: no metrics"
	API_WAIT=20
	api close
	[ "$STATUS" = REPL_OK ] || fail "$way: close: $STATUS $TEXT"
	[ ! -e "$temp" ] || fail "$way: it stays"
done
[ "$(cat "$TMP/victim")" = precious ] || fail "wrote through a link"

none() {
	[ ! -e "$TMP/metrics" ]
}
ok open 1
wait_for 10 written || fail "no metrics"
mkdir "$temp" || fail "mkdir"
wait_for 20 none || fail "metrics of an earlier time are still there"
rmdir "$temp"
wait_for 20 written || fail "no metrics any more"
page=$(dirname "$0")/../../docs/man/replctl.1
named=0
for name in $(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$TMP/metrics"); do
	grep -Eq "(^| )$name( |\$)" "$page" || fail "replctl(1) lacks $name"
	named=$((named + 1))
done
[ "$named" -gt 20 ] || fail "only $named metrics"
ok close
stop_api
