# SPDX-License-Identifier: BSD-3-Clause
# A fleet that comes back at once gets in: a quarter of sessions-max may log in at the same time, each as slowly as its
# distance makes it, and beyond that the lot decides, so that newcomers don't end each one before it is through.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH" 128
places=32
many=20

# From all of them the server hears nothing before each has had its first word.
python3 -c '
import asyncio, sys
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
async def relay(reader, writer):
    far = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    writer.write(await far[0].readline())
    here.append(writer)
    if len(here) == int(sys.argv[2]):
        all_here.set()
    await all_here.wait()
    await asyncio.gather(pump(reader, far[1]), pump(far[0], writer))
async def main():
    global here, all_here
    here, all_here = [], asyncio.Event()
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
' "$SERVE_PORT" $many >"$TMP/relay" 2>"$TMP/relay.log" &
PIDS="$PIDS $!"
wait_for 10 test -s "$TMP/relay" || fail "no relay"
relay=$(cat "$TMP/relay")
trust "$relay" "$TMP/serve_host_key.pub"
logins=
for i in $(seq $many); do
	echo hello | client -t 60000 cat "$SERVE_USER@127.0.0.1:$relay" >"$TMP/out$i" 2>"$TMP/err$i" &
	logins="$logins $!"
done
for pid in $logins; do
	wait "$pid" || fail "a login was ended: $(cat "$TMP"/err*; cat "$TMP/serve.log")"
done
for i in $(seq $many); do
	[ "$(cat "$TMP/out$i")" = hello ] || fail "login $i: $(cat "$TMP/err$i")"
done
all_gone() {
	[ -z "$(ps -o pid= --ppid "$SERVE_PID")" ]
}
wait_for 20 all_gone || fail "sessions that do not end"

# As many logins as there is room for, then as many again: of the first some are there still.
python3 -c '
import select, socket, sys
def login():
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    assert s.recv(1) == b"S"
    return s
def ends(s):
    try:
        while s.recv(65536, socket.MSG_DONTWAIT):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True
places = int(sys.argv[2])
alive = [login() for i in range(places)]
first = set(alive)
if any(ends(s) for s in alive):
    sys.exit("ended though there was room")
alive += [login() for i in range(places)]
while len(alive) > places:
    select.select(alive, [], [])
    alive = [s for s in alive if not ends(s)]
print(len(first & set(alive)), "of the first are left")
sys.exit(len(alive) < places or not first & set(alive))
' "$SERVE_PORT" $places >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
cat "$TMP/out"
grep -q "dropped: no login yet, and $places others wait" "$TMP/serve.log" || fail "it is not in the log"
