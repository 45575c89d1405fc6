# SPDX-License-Identifier: BSD-3-Clause
# One damaged copy of a sidecar is named and made good by the next writer; with two the pool is
# refused and its bytes stay.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
side=$TMP/serve/pools/side.repl

# flip OFFSET: invert one byte of the sidecar.
flip() {
	python3 -c '
import sys
f = open(sys.argv[1], "r+b")
f.seek(int(sys.argv[2]))
b = f.read(1)[0]
f.seek(int(sys.argv[2]))
f.write(bytes([b ^ 0xff]))' "$side" "$1"
}
answer() {
	sed -n "$1p" "$TMP/answers" >"$TMP/out"
}
ask() {
	{ hello && request "$@" && request bye; } | raw_session >"$TMP/answers"
	answer 2
}

ask pool.create '{"name":"side","size":8192}'
head -c 8192 /dev/urandom >"$TMP/bytes"
dd if="$TMP/bytes" of="$TMP/serve/pools/side" conv=notrunc status=none
for off in 0 230 1000 4150 8000; do
	flip "$off"
	{
		hello
		request pool.info '{"name":"side"}'
		request pool.open '{"name":"side","mode":"write"}'
		request pool.close
		request pool.info '{"name":"side"}'
		request bye
	} | raw_session >"$TMP/answers" || fail "byte $off: $(cat "$TMP/answers")"
	answer 2
	expect_answer '"sidecar":"one copy damaged"' "byte $off"
	answer 3
	expect_answer '"epoch"' "byte $off, open"
	answer 5
	expect_answer '"state":"up-to-date".*"sidecar":"ok"' "byte $off, after a writer"
done
flip 70
flip 4170
for mode in read write; do
	ask pool.open "{\"name\":\"side\",\"mode\":\"$mode\"}"
	expect_answer '"status":"corrupt"' "both copies, $mode"
done
ask pool.list
expect_answer '"name":"side"' "the damaged pool in the list"
cmp "$TMP/bytes" "$TMP/serve/pools/side" || lost "the pool's bytes have changed"
check_victim
