# SPDX-License-Identifier: BSD-3-Clause
# A configuration that has become wrong under a running repld serve, here since the pool directory is
# gone: the client is told where the reason is, and there it is, with the value.
. "$(dirname "$0")/lib.sh"
start_target
ctl list "$T" >"$TMP/out" || fail "list: $(cat "$TMP/out")"
mv "$TMP/serve/pools" "$TMP/serve/gone"
ctl_fails 10 'its configuration is wrong or its pool directory gone: the log of repld on 127.0.0.1' list "$T"
grep -q "key 'pool-dir': '$TMP/serve/pools': No such file" "$TMP/serve.log" ||
	fail "the log does not say: $(tail -n 3 "$TMP/serve.log")"
mv "$TMP/serve/gone" "$TMP/serve/pools"
ctl list "$T" >"$TMP/out" || fail "list again: $(cat "$TMP/out")"

cp "$TMP/repld.conf" "$TMP/right.conf"
echo "data-address = 192.0.2.1" >>"$TMP/repld.conf"
head -c 65536 /dev/zero >"$TMP/pool"
ctl_fails 10 "'192.0.2.1' is no address of this machine; correct data-address in repld.conf" sync "$TMP/pool" "$T/p"
cp "$TMP/right.conf" "$TMP/repld.conf"
ctl sync "$TMP/pool" "$T/p" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"

# Why a server does not start names the file and the key.
# refuses SED PATTERN [STATUS]
refuses() {
	sed "$1" "$TMP/repld.conf" >"$TMP/wrong.conf"
	timeout 10 "$REPLD" serve --config "$TMP/wrong.conf" 2>"$TMP/err"
	status=$?
	[ "$status" -eq "${3:-10}" ] || fail "$1: status $status: $(cat "$TMP/err")"
	grep -q "$TMP/wrong.conf: $2" "$TMP/err" || fail "$1: $(cat "$TMP/err")"
}
refuses "s/^listen = .*/listen = 127.0.0.1:$SERVE_PORT/" "key 'listen': '127.0.0.1:$SERVE_PORT': Address already in use" 1
refuses "/^user = /d; 1a user = no-such-user" "key 'user': 'no-such-user': there is no such user"
refuses "s,^host-key = .*,host-key = $TMP/none/key," "key 'host-key': .*'$TMP/none/key': No such file or directory"
refuses "1a log = file:$TMP/none/log" "key 'log': '$TMP/none/log': No such file or directory"
"$REPLD" session --config "$TMP/wrong.conf" </dev/null 2>"$TMP/err"
[ $? -eq 10 ] || fail "a session without its log: $(cat "$TMP/err")"
grep -q "$TMP/wrong.conf: key 'log'" "$TMP/err" || fail "a session: $(cat "$TMP/err")"
