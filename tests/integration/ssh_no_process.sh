#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A machine that has no process or no descriptor left for a connection says so, and not of each: who has no key does not
# fill the log of repld serve by it.
. "$(dirname "$0")/lib.sh"
command -v prlimit >/dev/null || { echo "skipped: no prlimit (package util-linux)"; exit 77; }
make_keys
start_serve

# connect COUNT [SECONDS]: so many connections one after the other, each until it is ended or that is over.
connect() {
	python3 -c '
import socket, sys
for i in range(int(sys.argv[2])):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
        s.settimeout(float(sys.argv[3]))
        try:
            while s.recv(4096):
                pass
        except OSError:
            pass
' "$SERVE_PORT" "$1" "${2:-10}" || fail "no server"
}

# said PATTERN: in how many lines.
said() {
	grep -Ec "$1" "$TMP/serve.log"
}

served() {
	echo hello | client cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/out" 2>"$TMP/err"
}

# limit ARG...: of the server, as whom it runs.
limit() {
	set -- prlimit --pid "$SERVE_PID" "$@"
	if [ "$(id -u)" -eq 0 ]; then
		set -- setpriv --reuid="$SERVE_USER" --regid="$(id -g "$SERVE_USER")" --clear-groups "$@"
	fi
	"$@" || fail "$*"
}

# hard WORDS: the most that it may be.
hard() {
	sed -n "s/^Max $1  *[^ ]* *\\([^ ]*\\) .*/\\1/p" "/proc/$SERVE_PID/limits"
}

# More than the log has room for.
limit --nproc=1:
connect 60
[ "$(said "error: connection from .* refused: Resource")" -ge 1 ] || fail "nobody is told of"
[ "$(said refused)" -le 30 ] || fail "$(said refused) lines of 60 connections"
limit --nproc="$(hard processes):"
served || fail "no session: $(cat "$TMP/err")"

# Nor by one that can't be taken, for as long as it can't.
stop "$SERVE_PID"
start_serve
limit --nofile=3:
connect 1 1
[ "$(said "error: accept: Too many")" -eq 1 ] || fail "$(said accept:) lines of one that is not taken"
limit --nofile="$(hard "open files"):"
served || fail "no session: $(cat "$TMP/err")"
[ "$(said "accept: connections are taken again")" -eq 1 ] || fail "its end is not told of"
