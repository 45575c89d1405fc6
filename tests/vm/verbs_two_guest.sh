# SPDX-License-Identifier: BSD-3-Clause
# In the two guests of verbs_two.sh.
#
# usage: verbs_two_guest.sh target|initiator SHARED
here=$(cd "$(dirname "$0")" && pwd)
. "$here/guest_lib.sh"
. "$here/../integration/api_lib.sh"
shared=$2
TARGET=10.9.0.1
INITIATOR=10.9.0.2
API_WAIT=90

# Nothing that is sent leaves the machine, and nobody is told.
wire_cut() {
	tc qdisc add dev eth0 root netem loss 100% || fail "the wire can't be cut"
}

wire_mended() {
	tc qdisc del dev eth0 root || fail "the wire can't be mended"
}

# told WORD: the other machine has said it.
told() {
	[ -e "$shared/$1" ]
}

# ---- the target ----

# wire_fails_here PREFIX: when it is asked for.
wire_fails_here() {
	wait_for 400 told "$1cut" || fail "nothing is asked for"
	wire_cut
	touch "$shared/$1is_cut"
	wait_for 400 told "$1mend" || fail "the wire is not to be mended"
	wire_mended
}

run_target() {
	rxe $TARGET eth0
	make_keys
	SERVE_ADDRESS=$TARGET
	start_serve "data-address = $TARGET" "heartbeat-timeout = 10000"
	cp "$TMP/key" "$TMP/serve_host_key.pub" "$shared"
	printf '%s\n' "$SERVE_PORT" >"$shared/port.new"
	mv "$shared/port.new" "$shared/port"
	wire_fails_here ""
	wire_fails_here late_
	# What was under way has been sent again by then: seconds, without the initiator's doing.
	sleep 6
	for at in {0..15}; do
		cmp -s -n 65536 -i $((at * 65536)) "$shared/after" "$TMP/serve/pools/late" &&
			echo "the block at $((at * 65536)) is of after the loss"
	done >"$shared/late.new"
	mv "$shared/late.new" "$shared/late_found"
	# Until its power goes.
	sleep 400
}

# ---- the initiator ----

pool() {
	printf '%s\n' "$SERVE_USER@$TARGET:$SERVE_PORT/$1"
}

eval "plain_$(declare -f configure)"
configure() {
	plain_configure "$@"
	ok set provider verbs
	ok set connect-timeout 30000
	ok set heartbeat-timeout 5000
	ok set close-timeout 5000
}

verify() {
	{
		cat "$TMP/login.conf"
		printf 'provider = verbs\nop-timeout = 30000\nconnect-timeout = 60000\n'
	} >"$TMP/ctl.conf"
	ctl --config "$TMP/ctl.conf" verify "$TMP/$1" "$(pool "$1")" >"$TMP/verify" 2>&1 ||
		lost "$1: $(cat "$TMP/verify")"
}

both_ways() {
	local method

	for method in auto appliance; do
		timeout 120 "$BUILD/tests/integration/api_random" "$TMP/$method" $((4 * MIB)) 7 4 1 \
			identity="$TMP/key" known-hosts="$TMP/known_hosts" op-timeout=30000 \
			connect-timeout=60000 heartbeat-timeout=20000 provider=verbs method=$method \
			target="$(pool $method)" || fail_by $? "$method"
		verify $method
	done
}

wire_fails() {
	start_api
	configure "$(pool wire)"
	ok set lanes 2
	ok set reconnect-max 1000
	ok map "$TMP/wire" $((4 * MIB))
	ok open 1
	ok put 0 $((4 * MIB)) 1
	ok persist 0 0 $((4 * MIB))
	wait_for 60 established 0 || fail "lost before anything happened: $TEXT"
	touch "$shared/cut"
	wait_for 60 told is_cut || fail "the target does not cut the wire"
	wire_cut
	ok put 0 $MIB 2
	ok persist 0 0 100
	echo "noticed after $MS ms"
	within $((OP_TIMEOUT + 5000))
	ok persist 1 0 $MIB
	within 2000
	degraded 0 || fail "it is not told: $TEXT"
	# Attempts to connect fail meanwhile.
	sleep 5
	touch "$shared/mend"
	wire_mended
	wait_for 120 established 0 || fail "not back: $TEXT"
	ok put 0 64 3
	ok persist 0 0 64
	established 0 || fail "lost again: $TEXT"
	ok close
	stop_api
	verify wire
}

# The RNIC sends from the pool: from ranges that the program goes on with when the replica is lost.
late_stores() {
	nvdimms
	namespace 0 devdax
	export FI_MR_CACHE_MAX_COUNT=0
	start_api
	ok map "$TMP/after" $MIB
	ok put 0 $MIB 4
	cp "$TMP/after" "$shared/after"
	configure "$(pool late)"
	ok set op-timeout 4000
	ok set heartbeat-timeout 20000
	ok set lanes 2
	ok map "$DEVICE" $((2 * MIB))
	ok open 1
	for seed in 1 2; do
		ok put 0 $((2 * MIB)) $seed
		ok persist 0 0 $MIB
		ok persist 1 0 $MIB
	done
	established 0 || fail "lost before anything happened: $TEXT"
	[ "$(field uncopied)" -gt 0 ] || fail "all was copied: $TEXT"
	touch "$shared/late_cut"
	wait_for 60 told late_is_cut || fail "the target does not cut the wire"
	wire_cut
	ok put 0 $MIB 3
	ok flush 1 0 $((MIB / 2))
	ok persist 0 $((MIB / 2)) $((MIB / 2))
	degraded 0 || fail "it is not told: $TEXT"
	ok put 0 $MIB 4
	# It does not come back, which would bring all of it there.
	kill -STOP "$(api_child)"
	wire_mended
	touch "$shared/late_mend"
	wait_for 60 told late_found || fail "the target does not look"
	kill -KILL "$(api_child)"
	wait "$api_pid"
	[ ! -s "$shared/late_found" ] || fail "$(cat "$shared/late_found")"
}

power_fails() {
	start_api
	configure "$(pool power)"
	ok set lanes 2
	ok set reconnect-max 1000
	ok map "$TMP/power" $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	wait_for 60 established 0 || fail "lost before anything happened: $TEXT"
	touch "$shared/cut_power"
	wait_for 60 told power_is_cut || fail "the power stays"
	ok put 0 $MIB 2
	ok persist 0 0 $MIB
	echo "noticed after $MS ms"
	within $((OP_TIMEOUT + 5000))
	degraded 0 || fail "it is not told: $TEXT"
	api close
	echo "closed after $MS ms: $STATUS"
	within 10000
	stop_api
}

run_initiator() {
	OP_TIMEOUT=8000
	rxe $INITIATOR eth0
	wait_for 200 told port || fail "there is no target"
	SERVE_PORT=$(cat "$shared/port")
	cp "$shared/key" "$TMP/key" && chmod 600 "$TMP/key"
	echo "[$TARGET]:$SERVE_PORT $(cut -d ' ' -f 1,2 "$shared/serve_host_key.pub")" >"$TMP/known_hosts"
	both_ways
	wire_fails
	late_stores
	power_fails
}

"run_$1"
