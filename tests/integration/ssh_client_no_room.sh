# SPDX-License-Identifier: BSD-3-Clause
# A client with a good key whose packets have no room for a byte is cut off: libssh would send it such
# packets for ever.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
# What the client's libssh tells of itself, by another number.
python3 -c '
import ctypes, sys
told = bytes.fromhex("c7431400800000c7430c00fa0000")
ctypes.CDLL("libssh.so.4")
path = next(l.split()[-1] for l in open("/proc/self/maps") if "libssh.so" in l)
code = open(path, "rb").read()
if code.count(told) != 1:
    sys.exit(77)
open(sys.argv[1], "wb").write(code.replace(told, bytes.fromhex("c743140a000000c7430c00fa0000")))
' "$TMP/libssh.so.4" || exit 77
echo hello | LD_LIBRARY_PATH=$TMP timeout 60 "$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/known_hosts" -t 50000 \
	cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/out" 2>"$TMP/err" &
client=$!
PIDS="$PIDS $client"
wait_for 30 gone "$client" || fail "it is served for ever"
! wait "$client" || fail "an answer"
wait_for 20 grep -q "the client takes no data" "$TMP/serve.log" || fail "not said"
