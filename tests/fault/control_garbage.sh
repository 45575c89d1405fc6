# SPDX-License-Identifier: BSD-3-Clause
# A line that is no JSON, too long or nested too deep is answered with an error, ends its session,
# and no other.
. "$(dirname "$0")/fault.sh"
start_target
start_victim

# try WHAT: $TMP/garbage is what follows hello; an error without id, and the end.
try() {
	{ hello && cat "$TMP/garbage" && request ping; } | raw_session >"$TMP/out" 2>"$TMP/err"
	expect_answer '"id":null,"error":\{"code":-32700,.*"begin a new session"' "$1"
	[ "$(wc -l <"$TMP/out")" -eq 2 ] || fail "$1: the session went on"
}

echo 'GET / HTTP/1.1' >"$TMP/garbage"
try "another protocol"
{ head -c 5000 /dev/urandom | tr -d '\n' && echo; } >"$TMP/garbage"
try "random bytes"
printf '{"jsonrpc":"2.0"\000,"id":7,"method":"ping"}\n' >"$TMP/garbage"
try "a zero byte"
{ head -c 300000 /dev/zero | tr '\0' ' ' && echo; } >"$TMP/garbage"
try "a line of 300,000 bytes"
{ head -c 100000 /dev/zero | tr '\0' '[' && echo; } >"$TMP/garbage"
try "100,000 brackets"
printf '{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\377"}}\n' >"$TMP/garbage"
try "not UTF-8"
check_victim
no_signal_deaths
