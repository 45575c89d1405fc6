#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An unmodified program of PMDK's that is killed at any moment loses nothing that it was told is durable.
#
#   run_kills.sh PROGRAM   pmemobj, log, blk, pmem2 or fio; KILLS of them, 10 unless given
#
# Each time the local file is deleted, restored, and checked by PMDK and the program; it goes on from there.
. "$(dirname "$0")/run_lib.sh"
STREAM=$BUILD/tests/integration/pmdk_stream
program=${1:?program}
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
start_target
pool=$TMP/pool

# write_on: becomes the program, which writes until it is killed; a line for each thing that is durable.
write_on() {
	case $program in
	pmemobj) run "$pool" killed "$FILL" steps "$pool" killed 100000 ;;
	fio) run "$pool" killed fio --name=killed --ioengine=libpmem --filename="$pool" --size=4M \
		--bs=4k --rw=randwrite --sync=1 --thread --time_based --runtime=60 --verify=crc32c \
		--do_verify=0 --randrepeat=0 --eta=always --eta-interval=250ms ;;
	*) run "$pool" killed "$STREAM" "$program" "$pool" ;;
	esac
}

# What is restored to the file; what the program had acknowledged, and the file it left.
check() {
	case $program in
	pmemobj)
		count=$(tail -n 1 "$2")
		expect_count "$1" killed "${count:-0}"
		;;
	fio)
		# A block may be torn, the one that was being written; what was never written is zeros.
		blocks_differ "$1" "$3" 1
		;;
	*)
		[ "$program" = pmem2 ] || timeout 20 pmempool check "$1" >"$TMP/check.log" 2>&1 ||
			fail "pmempool check: $(cat "$TMP/check.log")"
		timeout 20 "$STREAM" "$program-check" "$1" <"$2" >"$TMP/check.log" 2>&1 ||
			fail "its program says: $(cat "$TMP/check.log")"
		;;
	esac
}

# blocks_differ A B MOST
blocks_differ() {
	python3 - "$@" <<'PY' || fail "$program: blocks are lost"
import sys
a, b = (open(n, "rb").read() for n in sys.argv[1:3])
bad = [i for i in range(0, max(len(a), len(b)), 4096) if a[i:i + 4096] != b[i:i + 4096]]
if len(bad) > int(sys.argv[3]):
    sys.exit(f"{len(bad)} blocks differ: {bad[:10]}")
PY
}

if [ "$program" = fio ]; then
	command -v fio >/dev/null || { echo "skipped: no fio (package fio)"; exit 77; }
	[ "${PMEM_IS_PMEM_FORCE-}" ] || { echo "skipped: fio wants PMEM_IS_PMEM_FORCE=1"; exit 77; }
	cd "$TMP" || exit 1
	# All of the file, and fio's own verification through the preloaded library.
	(run "$pool" killed fio --name=whole --ioengine=libpmem --filename="$pool" --size=4M --bs=4k \
		--rw=randwrite --thread --verify=crc32c --do_verify=1) >"$TMP/fio.log" 2>&1 ||
		fail "fio: $(cat "$TMP/fio.log")"
	restore_pool killed "$pool"
	fio --name=whole --ioengine=psync --filename="$pool" --size=4M --bs=4k --rw=randwrite \
		--thread --verify=crc32c --verify_only >"$TMP/fio.log" 2>&1 ||
		fail "fio finds in what is restored: $(cat "$TMP/fio.log")"
fi

# That it writes: fio tells only how fast.
sign='[0-9]'
[ "$program" != fio ] || sign='\[w=[0-9.]*[1-9]'
i=0
while [ $i -lt "${KILLS:-10}" ]; do
	i=$((i + 1))
	# Before it is full.
	if [ $((i % 10)) -eq 0 ]; then
		rm -f "$pool"*
		ctl remove --force "$T/killed" >/dev/null || fail "removing the pool"
	fi
	: >"$TMP/counts"
	write_on >"$TMP/counts" 2>"$TMP/run.log" &
	pid=$!
	wait_for 30 grep -Eq "$sign" "$TMP/counts" || fail "nothing is written: $(cat "$TMP/run.log")"
	sleep "0.$((RANDOM % 300 + 100))"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	! grep -q "REPLICATED\|LOST" "$TMP/run.log" || fail "$(cat "$TMP/run.log")"
	# A line that is not ended was not acknowledged.
	cp "$TMP/counts" "$TMP/acknowledged"
	[ -z "$(tail -c 1 "$TMP/acknowledged")" ] || sed -i '$d' "$TMP/acknowledged"
	cp "$pool" "$TMP/left"
	restore_pool killed "$pool"
	check "$pool" "$TMP/acknowledged" "$TMP/left"
done
