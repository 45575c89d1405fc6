# SPDX-License-Identifier: BSD-3-Clause
# A session holds less than 16 MiB beyond its pool on each side, and costs no measurable CPU while idle.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api

# kib PID NAME: a line of /proc/PID/status; ticks PID: user and system time.
kib() {
	sed -n "s/^$2:[[:space:]]*\([0-9]*\) kB/\1/p" "/proc/$1/status"
}

ticks() {
	sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# How long it may take is not the matter here.
OP_TIMEOUT=20000
configure "$(pool p)"
ok set lanes 8
ok map "$TMP/p" $((64 * MIB))
ok put 0 $((64 * MIB)) 1
client=$(api_child)
before=$(kib "$client" RssAnon)
ok open 1
for lane in 0 1 2 3 4 5 6 7; do
	ok persist $lane 0 $((8 * MIB))
	ok persist $lane 0 64
done
target=$(sessions)
server=$(pgrep -P "$SERVE_PID")
used=$(($(kib "$client" RssAnon) - before))
there=$(kib "$target" RssAnon)
echo "RssAnon in KiB: client +$used, session $there, its SSH server $(kib "$server" RssAnon)"
sanitized || {
	[ "$used" -lt 16384 ] || fail "the client holds $used KiB"
	[ "$there" -lt 16384 ] || fail "the session holds $there KiB"
}

# idle: for three seconds none of the three took more than a tick, which may be the clock's error.
most=1
! sanitized || most=3
idle() {
	a="$(ticks "$client") $(ticks "$target") $(ticks "$server")"
	sleep 3
	b="$(ticks "$client") $(ticks "$target") $(ticks "$server")"
	echo "ticks of 1/$(getconf CLK_TCK) s: $a -> $b"
	set -- $a $b
	for i in 1 2 3; do
		[ $(($4 - $1)) -le $most ] || return
		shift
	done
}

# Where everything else waits for the cores, ticks are counted for who did not have them; and the
# log is retired a second after the last update.
idle || idle || idle || fail "an idle session took CPU: $a -> $b"
ok close
stop_api
