# SPDX-License-Identifier: BSD-3-Clause
# What somebody else serves at the name of a file's socket can't make a terminal obey it: metrics are lines of text.
. "$(dirname "$0")/lib.sh"
cd "$TMP" || exit 1
: >pool
python3 - >ready <<'END' &
import json, socket
s = socket.socket(socket.AF_UNIX)
s.bind("pool.repl-sock")
s.listen()
print("ready", flush=True)
text = "repl_a 1\nrepl_b{x=\"\u001b[31m\u009b2J\u007f\r\"} 2\n\u001b]0;title\u0007\n"
while True:
    c, _ = s.accept()
    asked = json.loads(c.makefile().readline())
    c.sendall(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"text": text}}).encode() + b"\n")
END
PIDS=$!
wait_for 20 grep -q ready ready || fail "nobody serves"
for json in "" --json; do
	# shellcheck disable=SC2086
	"$REPLCTL" metrics $json ./pool >out 2>err || fail "metrics: $(cat err)"
	! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177-\377]')" out || fail "it reaches the terminal: $(od -c out)"
	! grep -Eqi 'u00(1b|07|7f|9b)' out || fail "whoever takes the text gets it: $(cat out)"
done
"$REPLCTL" metrics ./pool >out || fail "metrics"
[ "$(sed -n 1p out)" = "repl_a 1" ] && [ "$(wc -l <out)" -eq 3 ] || fail "lines are lost: $(cat out)"
