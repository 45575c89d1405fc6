# SPDX-License-Identifier: BSD-3-Clause
# A pool grows whole or not at all: a full disk, a session that is killed in between, and sizes that are
# none leave it as it was.
if [ -z "${GROW_SMALL-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || {
		echo "needs a mount namespace of its own"
		exit 77
	}
	GROW_SMALL=1 exec unshare -m --propagation private bash "$0"
fi
. "$(dirname "$0")/fault.sh"

size_of() {
	stat -c %s "$TMP/serve/pools/$1"
}

mkdir -p "$TMP/serve/pools"
mount -t tmpfs -o size=4M none "$TMP/serve/pools" || exit 77
start_target
T=$target
ctl create "$T/p" --size 1M >/dev/null || fail "create"
ctl grow "$T/p" --size 2M >/dev/null || fail "grow"
[ "$(size_of p)" = 2097152 ] || fail "size $(size_of p)"
ctl --json info "$T/p" >"$TMP/info"
[ "$(member size <"$TMP/info")" = 2097152 ] || fail "info: $(cat "$TMP/info")"
[ "$(member state <"$TMP/info")" = up-to-date ] || fail "info: $(cat "$TMP/info")"
ctl_fails 1 "bytes are wanted and .* are free" grow "$T/p" --size 64M
ctl_fails 2 "can't have less|does not shrink" grow "$T/p" --size 1M
ctl_fails 3 "not found" grow "$T/absent" --size 2M
[ "$(size_of p)" = 2097152 ] || fail "size $(size_of p)"

# Beside a writer it is refused; and what that one has prepared goes with it.
touch "$TMP/writing"
: >"$TMP/raw"
{
	hello
	request pool.open '{"name":"p","mode":"write"}'
	request pool.grow '{"size":3145728,"prepare":true}'
	while [ -e "$TMP/writing" ]; do
		sleep 0.1
	done
} | raw_session >>"$TMP/raw" &
raw=$!
wait_for 20 grep -q '"id": *3' "$TMP/raw" || fail "no answer: $(cat "$TMP/raw")"
ctl_fails 4 "open for writing" grow "$T/p" --size 3M
[ "$(size_of p)" = 3145728 ] || fail "prepared: $(size_of p)"
ctl --json info "$T/p" >"$TMP/info"
[ "$(member size <"$TMP/info")" = 2097152 ] || fail "info: $(cat "$TMP/info")"
# That of the info may still be ending.
one_session() {
	session=$(for pid in $(pgrep -P "$SERVE_PID"); do pgrep -P "$pid"; done)
	[ "$(echo "$session" | wc -w)" -eq 1 ]
}
wait_for 10 one_session || fail "sessions: $session"
kill -KILL $session
wait_for 20 gone "$session" || fail "the session stays"
rm "$TMP/writing"
kill "$raw" 2>/dev/null
wait "$raw" 2>/dev/null
[ "$(size_of p)" = 3145728 ] || fail "killed: $(size_of p)"
ctl --json info "$T/p" >"$TMP/info" || fail "info of what was left"
[ "$(member size <"$TMP/info")" = 2097152 ] || fail "info: $(cat "$TMP/info")"

# The next writer cuts it back. What is no size, and a reader, change nothing.
{
	hello
	request pool.open '{"name":"p","mode":"write"}'
	request pool.grow '{"size":0}'
	request pool.grow '{"size":4097}'
	request pool.grow '{"size":-4096}'
	request pool.grow '{"size":4096}'
	request pool.grow '{"size":9223372036854771712}'
	request pool.grow '{"size":67108864}'
	request pool.grow '{"size":67108864,"prepare":true}'
	request pool.grow '{"size":2097152}'
	request pool.extents '{"off":2097153,"grain":4096}'
	request pool.extents '{"off":0,"grain":0}'
	request pool.extents '{"off":0,"grain":12288}'
	request pool.extents '{"off":0,"grain":4096}'
	request pool.close
	request pool.open '{"name":"p","mode":"read"}'
	request pool.grow '{"size":3145728}'
	request pool.extents '{"off":2097152,"grain":65536}'
	request bye
} | raw_session >"$TMP/out" || fail "the session failed"
python3 - "$TMP/out" <<'EOF' || fail "$(cat "$TMP/out")"
import json, sys
due = [None, None, "inval", "inval", "inval", "inval", "limit|nospc", "nospc", "nospc", None,
       "inval", "inval", "inval", None, None, None, "protocol", None, None]
got = [json.loads(line).get("error", {}).get("data", {}).get("status")
       for line in open(sys.argv[1])]
bad = [i for i, d in enumerate(due) if got[i] not in (d.split("|") if d else [None])]
sys.exit("answers: %s" % got if bad or len(got) != len(due) else 0)
EOF
[ "$(size_of p)" = 2097152 ] || fail "size $(size_of p)"
no_signal_deaths
umount "$TMP/serve/pools" || umount -l "$TMP/serve/pools"
