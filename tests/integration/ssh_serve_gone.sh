# SPDX-License-Identifier: BSD-3-Clause
# The program was taken away under a running repld serve, as by an upgrade that went wrong: its log says so, also in a file, and with the program it serves again.
. "$(dirname "$0")/lib.sh"
real=$REPLD
REPLD=$TMP/repld
cp "$real" "$REPLD" && chmod 755 "$REPLD" || fail "cp"
start_target "log = file:$TMP/serve.log"
ctl list "$T" >"$TMP/out" || fail "list: $(cat "$TMP/out")"
mv "$REPLD" "$TMP/away"
ctl_fails 10 "exit status 127" list "$T"
grep -q "error: .*no session, $REPLD: No such file or directory; install repld anew" "$TMP/serve.log" ||
	fail "the log does not say why: $(tail -n 3 "$TMP/serve.log")"
mv "$TMP/away" "$REPLD"
ctl list "$T" >"$TMP/out" || fail "list again: $(cat "$TMP/out")"
