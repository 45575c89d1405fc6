# SPDX-License-Identifier: BSD-3-Clause
# A method of repl.conf carries what it can; one that is wrong for the target is refused with the reason.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api

# counts: messages, RMA writes, reads and immediates of the only replica.
counts() {
	api stat 0
	MESSAGES=$(field message) WRITES=$(field write) READS=$(field read) IMMS=$(field immediate)
}

# with METHOD: a new set by that method.
with() {
	configure "$(pool p)"
	ok set method "$1"
	ok map "$TMP/p" $((2 * MIB))
	ok open 1
}

# by METHOD MESSAGES WRITES READS IMMEDIATES: what a persist of 64 and of 64 KiB come to, each.
by() {
	local method=$1 size

	shift
	with "$method"
	ok profile 0
	[[ $TEXT == *"method for 64 bytes = $method ("* ]] || fail "profile: $TEXT"
	[[ $TEXT == *"method for 65536 bytes = $method ("* ]] || fail "profile: $TEXT"
	# The first RMA to a region has it registered.
	ok persist 0 4096 64
	for size in 64 16000; do
		counts
		local messages=$MESSAGES writes=$WRITES reads=$READS imms=$IMMS

		ok put 4096 "$size" "$size"
		ok persist 0 4096 "$size"
		counts
		[ "$((MESSAGES - messages)) $((WRITES - writes)) $((READS - reads)) $((IMMS - imms))" = "$*" ] ||
			fail "$method, $size: $((MESSAGES - messages)) messages, $((WRITES - writes)) writes," \
				"$((READS - reads)) reads, $((IMMS - imms)) immediates"
		cmp -s -n "$size" -i 4096 "$TMP/p" "$TMP/serve/pools/p" || lost "$method, $size: not there"
	done
	# Large ranges, pairs and what it can't carry.
	ok put 0 $((2 * MIB)) 3
	ok persist 0 0 $((2 * MIB))
	ok put 0 $((2 * MIB)) 4
	ok atomic8 0 8
	ok pair 0 65536 8192 64 128
	ok persist 0 0 $((2 * MIB))
	ok compare 0
	same
	ok close
}

by message 1 0 0 0
by general-purpose 1 1 0 0
by write-imm 0 1 0 1

# refused_open METHOD PATTERN
refused_open() {
	configure "$(pool p)"
	ok set method "$1"
	ok map "$TMP/p" $((2 * MIB))
	refused REPL_E_REFUSED "$2" open 1
	[[ $TEXT == *"set method to auto or one of message"* ]] || fail "no next step: $TEXT"
}

refused REPL_E_CONFIG "'fastest' is none of" set method fastest

if [ "$(stat -f -c %T "$TMP/serve/pools")" = tmpfs ]; then
	by appliance 0 1 1 0
	by completion 0 1 0 0
	by write-imm-read 0 1 1 1
	refused_open native-flush "no flush of its own there.*native-flush = no, assumed: libfabric: .*FI_RMA_PMEM"
else
	for method in appliance completion write-imm-read deposit deposit-completion; do
		refused_open "$method" \
			"'$method' is not correct .*synced by the target .durability-class = page, libpmem2"
	done
fi
stop_api

# Where the admin says so the fabric's own flush is taken.
stop "$SERVE_PID"
start_serve "native-flush = yes"
start_api
if [ "$(stat -f -c %T "$TMP/serve/pools")" = tmpfs ]; then
	by native-flush 0 1 0 0
else
	refused_open native-flush "'native-flush' is not correct .*synced by the target"
fi
stop_api
