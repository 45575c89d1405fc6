# SPDX-License-Identifier: BSD-3-Clause
# fio's engines on libpmem ("fio") and libpmemblk ("pmemblk"). What a block is, and that it is whole, is fio's own
# verification; that none is lost, the file which the killed fio left.
command -v fio >/dev/null || { echo "skipped: no fio (package fio)"; exit 77; }
cd "$TMP" || exit 1
case $program in
fio)
	# In a guest it is: tests/vm/fio.sh.
	[ "${PMEM_IS_PMEM_FORCE-}${ON_DAX-}" ] ||
		{ echo "skipped: fio's libpmem takes nothing but persistent memory"; exit 77; }
	[ -z "${ON_DAX-}" ] || pool=$ON_DAX/pool
	job="--filename=$pool --sync=1"
	engine=libpmem
	reader=psync
	pages=1
	;;
pmemblk)
	fio --enghelp | grep -qw pmemblk || { echo "skipped: no engine pmemblk"; exit 77; }
	job="--filename=$pool,4096,24"
	engine=pmemblk
	reader=pmemblk
	# A block, and what libpmemblk notes of it in two places.
	pages=3
	;;
esac
job="$job --name=killed --size=4M --bs=4k --thread --verify=crc32c"

# That it writes: fio tells only how fast.
sign='\[w=[0-9.]*[1-9]'

write_on() {
	run "$pool" killed fio $job --ioengine=$engine --rw=randwrite --time_based --runtime=60 --do_verify=0 --randrepeat=0 \
		--eta=always --eta-interval=250ms
}

# fio fills a file by write(2) before it begins: when it is killed there, the replica has what was before. What its
# jobs have not reached is no block to verify, here and there.
check() {
	# The block that was being written: torn, or here already and not yet there.
	local unsure=1

	grep -Eq "$sign" "$TMP/counts" || return 0
	pages_differ "$1" "$3" "$pages"
	[ "$program" = fio ] || pmempool_check "$1"
	left=$(bad "$3") && [ "$left" -lt 1024 ] || fail "fio reads nothing: $(cat "$TMP/fio.log")"
	[ "$(bad "$1")" -le $((left + unsure)) ] || lost "fio finds: $(cat "$TMP/fio.log")"
}

# bad FILE: how many of its blocks are no block of fio's.
bad() {
	timeout 30 fio ${job//$pool/$1} --ioengine=$reader --rw=read --continue_on_error=verify \
		>"$TMP/fio.log" 2>&1
	sed -n 's/^ *errors *: total=\([0-9]*\),.*/\1/p' "$TMP/fio.log"
}
