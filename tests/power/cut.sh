# SPDX-License-Identifier: BSD-3-Clause
# After a power cut at any moment every acknowledged update is on the media, no pair's b is there
# without its a, and no eight atomic bytes are torn.
#
# usage: cut.sh CONFIGURATION FIRST-SEED COUNT [plain|evict|drop]
#
# CONFIGURATION is a name of the file configurations. Half of the seeds run with lines written back
# before their time, unless plain or evict says which. Each run prints its seed; to repeat one:
#   BUILD=build-debug bash tests/power/cut.sh page SEED 1 plain
# POWER_KEYS are more keys for the load, as where deadlines are to be longer.
# The seed decides the updates, what is written back, and after how many acknowledgements the cut
# comes. The timing of the target it can't decide: a loss that is rare may want several tries.
#
# With drop something is left out that the method needs, and with a configuration that repld.conf
# lies about the method is wrong: the test passes as soon as a run shows a loss.
. "$(dirname "$0")/on_disk.sh"
. "$(dirname "$0")/../integration/lib.sh"
name=$1
first=$2
count=$3
row=$(grep "^$name " "$(dirname "$0")/configurations") || fail "no configuration '$name'"
read -r _ REPL_MEDIA_GRANULARITY REPL_MEDIA_DOMAIN REPL_MEDIA_DDIO rqwrb nic said method drop _ <<END
$row
END
export REPL_MEDIA_GRANULARITY REPL_MEDIA_DOMAIN REPL_MEDIA_DDIO
mode=${4-}
if [ "$mode" = drop ]; then
	case $drop in
	read) export REPL_NIC_NO_READ=1 ;;
	*) export REPL_MEDIA_DROP="$drop" ;;
	esac
else
	drop=
fi
REPLD=$BUILD/tests/sim/repld-media
CUT=$BUILD/tests/sim/media_cut
LOAD=$BUILD/tests/power/power_load
[ "$nic" = real ] || LOAD=${LOAD}_nic
CHECK=$BUILD/tests/power/power_check
SIDECAR_SLOTS=8192
loses=no
[ -z "$drop" ] && [ "$said" = - ] || loses=yes
lost=0
killed=0

# The lines of repld.conf for DOMAIN DDIO RQWRB. With completions that mean no more than an RNIC's
# there is an RNIC, and without DDIO no rule lets a software provider profit from that: the tests'
# word against libfabric's.
conf_of() {
	echo "persistence-domain = $1"
	echo "ddio = $2"
	echo "rqwrb = $3"
	[ "$nic$2" = realon ] || echo "provider-class = ib trust-me"
}

conf() {
	# A page cache has none of this.
	[ "$REPL_MEDIA_GRANULARITY" != page ] || return 0
	if [ "$said" = - ]; then
		conf_of "$REPL_MEDIA_DOMAIN" "$REPL_MEDIA_DDIO" "$rqwrb"
	else
		# shellcheck disable=SC2046
		conf_of $(echo "$said" | tr / ' ')
	fi
}

session_pid() {
	sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1
}

# The machine stops: nothing is left of PATH but what the media hold of it.
power_cut() {
	"$CUT" "$TMP/serve/pools/$1" 2>"$TMP/cut.log" &&
		"$CUT" "$TMP/serve/pools/$1.repl" $SIDECAR_SLOTS 2>>"$TMP/cut.log" ||
		fail "the cut of $1"
}

# ask LINE...: to a session of its own; each is answered by a result.
ask_anyway() {
	i=0
	for line in '"hello","params":{"versions":[1],"peer":"power"}' "$@" '"bye"'; do
		i=$((i + 1))
		echo '{"jsonrpc":"2.0","id":'"$i"',"method":'"$line"'}'
	done | timeout 20 "$BUILD/tests/integration/channel_cat" -i "$TMP/key" \
		-k "$TMP/known_hosts" cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/answers" 2>&1
}

ask() {
	ask_anyway "$@"
	[ "$(grep -c '"result"' "$TMP/answers")" -eq $(($# + 2)) ] ||
		fail "asked: $(cat "$TMP/answers")"
}

# killed_at POOL N: the power fails while the next writer opens the pool, at its N-th store or flush; false if it has no N.
killed_at() {
	echo "$2" >"$TMP/serve/pools/$1.kill"
	chmod a+rw "$TMP/serve/pools/$1.kill"
	ask_anyway '"pool.open","params":{"name":"'"$1"'","mode":"write"}' '"pool.close"'
	rm -f "$TMP/serve/pools/$1.kill"
	[ "$(grep -c '"result"' "$TMP/answers")" -lt 4 ]
}

# The machine is up again: the next writer finds what the media hold, and repld sees to what is to
# be done with it. That is durable, too. The power may fail in the middle of that, at the N-th store
# or flush, or an earlier one if it has less to do: next_writer POOL [N].
next_writer() {
	if [ -n "${2-}" ]; then
		n=$2
		mkdir "$TMP/found"
		cp -a "$TMP/serve/pools/$1"* "$TMP/found"
		until killed_at "$1" "$n"; do
			n=$((n / 2))
			[ "$n" -gt 0 ] || break
			rm -f "$TMP/serve/pools/$1"*
			cp -a "$TMP/found/$1"* "$TMP/serve/pools"
		done
		rm -r "$TMP/found"
		[ "$n" -eq 0 ] || killed=$((killed + 1))
		power_cut "$1"
	fi
	ask '"pool.open","params":{"name":"'"$1"'","mode":"write"}' '"pool.close"'
	power_cut "$1"
}

check() {
	"$CHECK" "$TMP/journal" "$2" >"$TMP/verdict"
	verdict=$?
	[ $verdict -le 1 ] || lost "seed $1: $(cat "$TMP/verdict")"
}

load_said() {
	grep -q ready "$TMP/said" || gone "$load"
}

load_and_kill() {
	rm -f "$TMP/go" "$TMP/said"
	mkfifo "$TMP/go"
	set --  "$1" "$TMP/local" "$TMP/journal" "$SERVE_USER@127.0.0.1:$SERVE_PORT/p$1" \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" lanes=4
	[ "$method" = auto ] || set -- "$@" method="$method"
	# shellcheck disable=SC2086
	set -- "$@" ${POWER_KEYS-}
	timeout 60 "$LOAD" "$@" <"$TMP/go" >"$TMP/said" 2>"$TMP/load.log" &
	load=$!
	exec 3>"$TMP/go"
	wait_for 15 load_said || fail "seed $1: the load does not start"
	grep -q ready "$TMP/said" || fail "seed $1: the load ends: $(cat "$TMP/load.log")"
	session_pid >&3
	exec 3>&-
	wait "$load" || fail "seed $1: the load failed"
}

cut_once() {
	pool=p$1
	how=plain
	[ -z "${REPL_MEDIA_EVICT-}" ] || how=evict
	load_and_kill "$1"
	power_cut "$pool"
	# A ring, or the round log of a page cache.
	[ "$rqwrb$REPL_MEDIA_GRANULARITY" = dramcache_line ] ||
		[ "$rqwrb$REPL_MEDIA_GRANULARITY" = drambyte ] ||
		next_writer "$pool" $(($1 % 61 + 1))
	check "$1" "$TMP/serve/pools/$pool"
	echo "$name, seed $1 $how${drop:+, drop $drop}: $(tail -n 1 "$TMP/verdict")"
	lost=$((lost + verdict))
	[ $verdict -eq 0 ] || [ "$loses" = yes ] || lost "$name, seed $1 $how: $(cat "$TMP/verdict")"
}

# What the next writer leaves, and what a restore gives back, is the same.
restore_check() {
	next_writer "p$1"
	timeout 20 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" restore --force \
		"$SERVE_USER@127.0.0.1:$SERVE_PORT/p$1" "$TMP/restored" >"$TMP/restore.log" 2>&1 ||
		lost "seed $1: restore"
	check "$1" "$TMP/restored"
	[ $verdict -eq 0 ] || lost "seed $1, restored: $(cat "$TMP/verdict")"
	rm -f "$TMP"/restored "$TMP"/restored.repl
}

# run FROM TO, on a server of their own.
run() {
	[ "$1" -lt "$2" ] && [ $lost -eq 0 ] || return 0
	conf >"$TMP/conf"
	IFS='
'
	# shellcheck disable=SC2046
	start_serve $(cat "$TMP/conf")
	unset IFS
	seed=$1
	while [ "$seed" -lt "$2" ] && [ $lost -eq 0 ]; do
		cut_once "$seed"
		[ "$loses" = yes ] || [ "$seed" -ne "$1" ] || restore_check "$seed"
		rm -f "$TMP/serve/pools/p$seed"* "$TMP/local"*
		seed=$((seed + 1))
	done
	stop "$SERVE_PID"
}

make_keys
# What is to be lost is so most easily while the target takes its time.
[ "$loses" = no ] || export REPL_MEDIA_NAP_US=4000
case $mode in
plain) half=$((first + count)) ;;
evict) half=$first ;;
*)
	half=$((first + count / 2))
	[ "$loses" = no ] || half=$first
	;;
esac
run "$first" "$half"
export REPL_MEDIA_EVICT=1
run "$half" "$((first + count))"
# A ring may be empty.
case $loses,$REPL_MEDIA_GRANULARITY,$method in
no,page,* | no,*,deposit*) [ $killed -gt 0 ] || [ "$count" -eq 1 ] || fail "$name: no next writer was killed" ;;
esac
[ "$loses" = no ] || [ $lost -gt 0 ] || fail "$name: nothing was lost in $count runs"
