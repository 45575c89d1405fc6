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
