# SPDX-License-Identifier: BSD-3-Clause
# A server whose packets have no room for a byte is refused: libssh would send such packets for ever.
. "$(dirname "$0")/lib.sh"
make_keys
ssh-keygen -q -t ed25519 -N '' -f "$TMP/host_key" || fail "ssh-keygen"
# What the server's libssh tells of itself, by another number.
python3 -c '
import ctypes, sys
told, ten = (35000).to_bytes(4, "little"), (10).to_bytes(4, "little")
ctypes.CDLL("libssh.so.4")
path = next(l.split()[-1] for l in open("/proc/self/maps") if "libssh.so" in l)
code = open(path, "rb").read()
if code.count(told) != 2:
    sys.exit(77)
open(sys.argv[1], "wb").write(code.replace(told, ten))
' "$TMP/libssh.so.4" || exit 77
port=$(free_port)
LD_LIBRARY_PATH=$TMP "$BUILD/tests/integration/ssh_asks" complaints "$port" "$TMP/host_key" \
	>"$TMP/asks.out" 2>"$TMP/asks.log" &
PIDS="$PIDS $!"
wait_for 10 grep -q listening "$TMP/asks.out" || fail "the server does not start"
trust "$port" "$TMP/host_key.pub"
echo hello | timeout 20 "$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/known_hosts" -t 2000 cat "x@127.0.0.1:$port" \
	>"$TMP/out" 2>"$TMP/err"
status=$?
[ "$status" -eq 1 ] || fail "status $status: $(cat "$TMP/err")"
grep -q "^protocol: .*packets of at most 10 bytes" "$TMP/err" || fail "not refused but: $(cat "$TMP/err")"
