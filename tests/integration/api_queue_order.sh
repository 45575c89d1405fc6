# SPDX-License-Identifier: BSD-3-Clause
# When the program is killed at any moment, alone or with its targets, each queued replica holds a prefix of what was drained, and the positions say which one has more.
. "$(dirname "$0")/api_lib.sh"
SEED=${API_SEED:-$(date +%s)}
echo "API_SEED=$SEED"
RANDOM=$SEED
make_keys
start_serve

# numbers FILE: first and second number of each thread.
numbers() {
	python3 - "$1" <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read(65536)
print(*[struct.unpack_from("<Q", data, t * 8192 + at)[0] for t in range(4) for at in (0, 4096)])
PY
}

# position POOL, and 0 where none is recorded.
position() {
	ctl info --json "$(pool "$1")" | python3 -c 'import json, sys; print(json.load(sys.stdin).get("position", 0))'
}

# killed NAME LINE...: with that configuration, at a moment of the seed's choice.
killed() {
	name=$1
	shift
	{
		echo "[repl]"
		echo "identity = $TMP/key"
		echo "known-hosts = $TMP/known_hosts"
		printf '%s\n' "$@"
	} >"$TMP/repl.conf"
	rm -f "$TMP/load.out"
	count=$((RANDOM % 1500 + 1))
	REPL_CONFIG=$TMP/repl.conf "$BUILD/tests/integration/queue_load" "$TMP/p-$name" $count \
		>"$TMP/load.out" 2>"$TMP/load.log" &
	load=$!
	PIDS="$load $PIDS"
	wait_for 40 grep -q . "$TMP/load.out" || fail "no word of the load"
	grep -q there "$TMP/load.out" || fail "$(cat "$TMP/load.out")"
	# shellcheck disable=SC2046
	signalled KILL "$load" $([ $((round % 2)) -eq 1 ] || sessions)
	wait "$load" 2>/dev/null
	wait_for 10 no_sessions || fail "sessions stay"
}

# In order on each replica: never a second number without its first; at most one ahead.
in_order() {
	# What a killed session has left is brought in.
	ctl probe "$(pool "$1")" >/dev/null || fail "probe of $1"
	# shellcheck disable=SC2046
	set -- "$1" $(numbers "$TMP/serve/pools/$1")
	pool=$1
	shift
	sum=0
	while [ $# -gt 0 ]; do
		[ "$1" -eq "$2" ] || [ "$1" -eq $(($2 + 1)) ] ||
			lost "$pool has $2 and $1 in front of it (count $count)"
		sum=$((sum + $1 + $2))
		shift 2
	done
}

# ahead A B: who has the higher position has more numbers.
compare_positions() {
	a=$(position "$1")
	b=$(position "$2")
	in_order "$1"
	first=$sum
	in_order "$2"
	[ "$a" -gt 0 ] && [ "$b" -gt 0 ] || lost "no position: $a, $b"
	# One that is not on record is there in part at most.
	[ "$a" -lt "$b" ] && [ "$first" -gt $((sum + 1)) ] && lost "$1: $a has more than $2: $b"
	[ "$a" -gt "$b" ] && [ $((first + 1)) -lt "$sum" ] && lost "$1: $a has less than $2: $b"
	echo "$name, $count rounds: $1 position $a sum $first, $2 position $b sum $sum"
}

for round in $(seq "${ROUNDS:-2}"); do
	killed quorum "target = $(pool q-a)" "target = $(pool q-b)" "target = $(pool q-c)" \
		"ack = quorum"
	compare_positions q-a q-b
	compare_positions q-b q-c
	killed async "target = $(pool s-a)" "async-target = $(pool s-b)"
	in_order s-a
	in_order s-b
	# Of one that is killed the first drain may still be queued.
	[ $((round % 2)) -eq 0 ] || [ "$(position s-b)" -gt 0 ] || lost "no position of s-b"
done
