# SPDX-License-Identifier: BSD-3-Clause
# A log that has got as long as a file may be (RLIMIT_FSIZE) ends neither repld serve nor its sessions, and a pool that is
# there goes on being written, whatever its size.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
check_victim
stop "$SERVE_PID"
# Room for two lines: which key, and where it listens.
cat >"$TMP/repld" <<END
#!/bin/sh
ulimit -f 64 || exit 1
head -c 32400 /dev/zero | tr '\\0' '\\n' >"$TMP/serve.log"
exec "$BUILD/repld" "\$@" 2>>"$TMP/serve.log"
END
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
start_target
for _ in 1 2; do
	start_victim
	check_victim
done
gone "$SERVE_PID" && fail "repld serve has ended"
[ "$(stat -c %s "$TMP/serve.log")" -eq 32768 ] || fail "the log is not full"
