# SPDX-License-Identifier: BSD-3-Clause
# A read of more than can be had in op-timeout, while each piece of it is answered at once, fails alone: the replica stays,
# and on-loss = fail has nothing to say. With a piece that is not answered it is lost.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far
start_api
OP_TIMEOUT=7000

# What is not waited for gets there in its time.
reads_same() {
	ok read 0 0 4096 65536
	[ "$TEXT" = same ]
}

# read_long KEY: of a target that is named by this; 20 MiB at 4 MB/s, 0.26 s a piece.
read_long() {
	configure
	ok set "$1" "$FAR_TARGET/p"
	ok set on-loss fail
	ok set heartbeat-timeout 20000
	stay_lost
	ok map "$TMP/p" $((20 * MIB))
	ok put 0 $((20 * MIB)) 7
	ok open 1
	link both rate 32000
	refused REPL_E_TIMEOUT "of 20971520 bytes were read" read 0 0 0 $((20 * MIB))
	within $((OP_TIMEOUT + LATE))
	ok stat 0
	is replication 0
	is error 0
	is reconnect 0
	ok put 4096 4096 9
	ok persist 0 4096 4096
	wait_for 20 reads_same || fail "the replica differs"
	link both rate 0
	ok read 0 0 0 $((20 * MIB))
	same
	equal "$TMP/p" "$TMP/serve/pools/p"
	hurt stop
	refused REPL_E_TIMEOUT "did not answer in time" read 0 0 0 64
	ok stat 0
	is replication 2
	api close
	heal
	rm -f "$TMP/p"* "$TMP/serve/pools/p"*
}

read_long target
# By a lane that it has for all.
read_long async-target
stop_api
