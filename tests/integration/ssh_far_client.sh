# SPDX-License-Identifier: BSD-3-Clause
# A host that connects without end and never logs in keeps out no other one, however far that is.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
# The good client comes by a relay of 40 ms there and back.
python3 -c '
import asyncio, sys
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            await asyncio.sleep(0.02)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
async def relay(reader, writer):
    far = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(pump(reader, far[1]), pump(far[0], writer))
async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
' "$SERVE_PORT" >"$TMP/relay" 2>"$TMP/relay.log" &
PIDS="$PIDS $!"
wait_for 10 test -s "$TMP/relay" || fail "no relay"
relay=$(cat "$TMP/relay")
trust "$relay" "$TMP/serve_host_key.pub"
# The other one has an address of its own; so that connecting does not wait for anything. A process for each is more than
# two cores bear at that pace with sanitizers.
pause=0.0005
! sanitized || pause=0.1
python3 -c '
import socket, sys, time
held = []
for count in range(60000):
    s = socket.socket()
    s.setblocking(False)
    try:
        s.bind(("127.0.0.2", 0))
        s.connect(("127.0.0.1", int(sys.argv[1])))
    except BlockingIOError:
        held.append(s)
    except OSError:
        s.close()
    if len(held) > 200:
        held.pop(0).close()
    if count == 40:
        print("ready", flush=True)
    time.sleep(float(sys.argv[2]) if count > 40 else 0.0005)
' "$SERVE_PORT" "$pause" >"$TMP/ready" 2>"$TMP/hostile.log" &
PIDS="$PIDS $!"
wait_for 20 test -s "$TMP/ready" || fail "no connections"
for i in 1 2 3; do
	echo hello | client -t 30000 cat "$SERVE_USER@127.0.0.1:$relay" >"$TMP/out" 2>"$TMP/err" ||
		fail "kept out: $(cat "$TMP/err")"
done
grep -q "connection from 127\.0\.0\.2:.* dropped: no login yet" "$TMP/serve.log" ||
	fail "there was room for all"
# Nor does it fill the log: twenty lines each ten seconds.
lines=$(grep -c "dropped: no login yet" "$TMP/serve.log")
[ "$lines" -le 140 ] || fail "$lines lines in the log"
