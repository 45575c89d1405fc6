# SPDX-License-Identifier: BSD-3-Clause
# Memory that is no file's, as that of device DAX: of what a replica misses nothing is kept, and who opens it again over one
# that differs is told why, and what to do, which does it; with pool-file its record is kept, and what takes a replica's
# data replaces that, and so is the program found; while these stand there nothing else is taken for them, nor is a file that was
# replaced since it was mapped for the new one. By a link to a file it is that file. A later part of a file is refused, and
# with a pool-file of another name it is such memory. Private memory has no record, named or not: a later start's is another.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api

# opened POOL BYTE: memory that is new, all of it this byte.
opened() {
	configure "$(pool "$1")"
	ok device $MIB
	ok put 0 $MIB "$2"
}

opened p 1
ok open 1
ok persist 0 0 $MIB
ok close
opened p 2
refused REPL_E_DIVERGED "no mapping of a regular file.* replctl restore [^ ]* FILE; .*pool-file" open 1
next=$(sed -n 's/.*to have it anew: \(replctl remove [^ ;]*\);.*/\1/p' <<<"$TEXT")
[ -n "$next" ] || fail "no way to have it anew: $TEXT"
# shellcheck disable=SC2086 # the words of a command line
ctl ${next#replctl } --force
ok open 1
ok persist 0 0 64
ok close

opened q 1
ok set pool-file "$TMP/device"
ok open 1
ok persist 0 0 $MIB
# The program is found by that name, which need not be there.
ln -s . "$TMP/here"
for name in "$TMP/device" "$TMP/here/device"; do
	for command in status why metrics "pause --force" resume "wait --timeout 20"; do
		# shellcheck disable=SC2086 # a word and its option
		ctl $command "$name" >"$TMP/out" 2>"$TMP/err" || fail "$command: $(cat "$TMP/err")"
		[[ $command =~ metrics|wait ]] || grep -qF "$(pool q)" "$TMP/out" || fail "$command: $(cat "$TMP/out")"
	done
done
# One that was killed, before the machine was started anew: what it makes durable itself the device has, and perhaps no replica.
cp "$TMP/device.repl" "$TMP/killed.repl"
ctl_rebooted why "$TMP/killed" >"$TMP/out" 2>&1 || fail "why: $(cat "$TMP/out")"
grep -q "^next *if it is the pool-file of a device whose program makes its data durable before they are replicated, start it" "$TMP/out" ||
	fail "$(cat "$TMP/out")"
ok close
ctl why "$TMP/device" >"$TMP/out" || fail "why of a device"
grep -q "^next *if it is the pool-file of a device, start the program; .*restore" "$TMP/out" || fail "$(cat "$TMP/out")"
opened q 2
ok set pool-file "$TMP/device"
ok open 1
ok compare 0
same
ok close

# blank: the device was replaced; nothing but its record is left.
blank() {
	configure "$(pool q)"
	ok device $MIB
	ok set pool-file "$TMP/device"
}

T=$SERVE_USER@127.0.0.1:$SERVE_PORT
copied="where that is not what is mapped, as of a device, copy it there, and remove it, not $TMP/device.repl, before the program starts"
blank
refused REPL_E_DIVERGED "zeros.* replctl restore $T/q $TMP/device; $copied; .*replctl remove $T/q" open 1
ctl restore "$T/q" "$TMP/device" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
# It was not copied.
cp "$TMP/serve/pools/q" "$TMP/kept"
opened q 3
ok set pool-file "$TMP/device"
api open 1
equal "$TMP/kept" "$TMP/serve/pools/q"
[[ "$STATUS $TEXT" =~ ^"REPL_E_INVAL $TMP/device is not the file that is mapped".*"copy it there and remove it, not $TMP/device.repl"$ ]] ||
	fail "$STATUS $TEXT"
rm "$TMP/device"
# One that holds the place is none.
: >"$TMP/device"
opened q 2
ok set pool-file "$TMP/device"
ok open 1
ok compare 0
same
ok close
rm "$TMP/device"
wait_for 20 no_sessions || fail "the session stays"

# The replica has gone on.
ctl promote "$T/q" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
ctl demote "$T/q" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
opened q 3
ok set pool-file "$TMP/device"
refused REPL_E_DIVERGED "newer.* replctl restore $T/q $TMP/device; $copied; .*replctl remove $T/q" open 1

# So has one of a program that runs: what is named can be done, since no command takes what is mapped, and there is no file.
opened w 1
ok set pool-file "$TMP/mapped"
ok open 1
ok persist 0 0 $MIB
for command in "pause --force $TMP/mapped" "promote $T/w" "demote $T/w"; do
	# shellcheck disable=SC2086 # the words of a command line
	ctl $command >/dev/null 2>"$TMP/err" || fail "$command: $(cat "$TMP/err")"
done
ok put 0 64 2
ok persist 0 0 64
ctl resume "$TMP/mapped" >"$TMP/out" 2>&1
is_diverged() {
	[ "$(ctl why --json "$TMP/mapped" | member replicas.0.reason)" = diverged ]
}
wait_for 20 is_diverged || fail "$(ctl why "$TMP/mapped" 2>&1)"
ctl why --json "$TMP/mapped" >"$TMP/out" || fail "why: $(cat "$TMP/out")"
# Nor is a command cut off in what it tells.
[[ $(member replicas.0.message <"$TMP/out") != *replctl* ]] || fail "$(cat "$TMP/out")"
next=$(member replicas.0.next <"$TMP/out")
[[ $next =~ ^(replctl restore $T/w OTHER-FILE)" (to look at it); to have it anew: "(replctl remove $T/w)", then "(replctl resume $TMP/mapped $T/w)$ ]] ||
	fail "$next"
for command in "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]} --force" "${BASH_REMATCH[3]}"; do
	# shellcheck disable=SC2086 # the words of a command line
	(cd "$TMP" && ctl ${command#replctl }) >"$TMP/out" 2>&1 || fail "$command: $(cat "$TMP/out")"
done
ctl wait "$TMP/mapped" --timeout 20 >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
ok compare 0
same
ok close

# at_file [NAME]: a program whose pool is that file, by its own name.
at_file() {
	configure "$(pool k)"
	ok set pool-file "$TMP/k"
	ok map "$TMP/${1-k}" $MIB
}

# What takes the replica's data has them in another file than the program's, which tries again: it is not copied over them.
for how in resolve restore aside unnamed; do
	at_file
	[ $how != unnamed ] || configure "$(pool k)"
	ok open 1
	ok persist 0 0 $MIB
	ok close
	wait_for 20 no_sessions || fail "the session stays"
	ctl promote "$T/k" >/dev/null 2>"$TMP/err" && ctl demote "$T/k" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
	cp "$TMP/serve/pools/k" "$TMP/kept"
	ok put 0 100 ${#how}
	refused REPL_E_DIVERGED "replctl resolve .*--discard local FILE $T/k" open 1
	wait_for 20 no_sessions || fail "the session stays"
	case $how in
	resolve | unnamed) ctl resolve --force --discard local "$TMP/k" "$T/k" ;;
	restore) ctl restore --force "$T/k" "$TMP/k" ;;
	aside) mv "$TMP/k" "$TMP/k.old" && ctl restore "$T/k" "$TMP/k" ;;
	esac >"$TMP/out" 2>&1 || fail "$how: $(cat "$TMP/out")"
	[ $how != aside ] || rm "$TMP/k.old"
	api open 1
	equal "$TMP/kept" "$TMP/serve/pools/k"
	equal "$TMP/kept" "$TMP/k"
	[[ "$STATUS $TEXT" =~ ^"REPL_E_INVAL $TMP/k is not the file that is mapped".*"map it anew" ]] || fail "$how: $STATUS $TEXT"
	at_file
	ok open 1
	ok compare 0
	same
	ok close
done
# By whichever of its names it was mapped.
ln "$TMP/k" "$TMP/k.link"
at_file k.link
rm "$TMP/k.link"
ok open 1
ok compare 0
same
ok close

# A link to a file is that file: there is one record, one lock and one place to ask.
ln -s file "$TMP/alias"
linked() {
	configure "$(pool l)"
	ok map "$TMP/file" $MIB
	ok set pool-file "$TMP/alias"
}
linked
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
[ -s "$TMP/file.repl" ] && [ ! -e "$TMP/alias.repl" ] || lost "the record is beside the link: $(ls "$TMP")"
for name in file alias; do
	ctl status "$TMP/$name" >/dev/null 2>"$TMP/err" || fail "status by $name: $(cat "$TMP/err")"
done
ctl_fails 4 "locked|in use" restore --force "$T/l" "$TMP/file"
ok close
for name in file alias; do
	ctl why "$TMP/$name" | grep -q "closed it in order" || fail "why by $name"
done
# An earlier version has kept it beside the link.
mv "$TMP/file.repl" "$TMP/alias.repl"
linked
refused REPL_E_REFUSED "an earlier version.*: mv $TMP/alias.repl $TMP/file.repl" open 1
# That it speaks of the file all commands see, before anything is made of the file without it.
for args in "restore --force $T/l $TMP/alias" "restore --dry-run $T/l $TMP/alias" "sync $TMP/alias $T/l" \
	"verify $TMP/alias $T/l" "resolve --discard local $TMP/alias $T/l" "create $T/new --from $TMP/alias"; do
	# shellcheck disable=SC2086
	ctl_fails 4 "an earlier version.*: mv $TMP/alias.repl $TMP/file.repl" $args
done
ctl_fails 4 "^next: mend that, then replctl restore --force $T/l $TMP/file$" \
	restore --force "$T/l" "$TMP/alias"
cp "$TMP/alias.repl" "$TMP/file.repl"
linked
refused REPL_E_REFUSED "both $TMP/alias.repl and $TMP/file.repl" open 1
mv "$TMP/alias.repl" "$TMP/file.repl"
linked
ok open 1
ok compare 0
same
ok close

# One to a device is the name itself, as without a link.
ln -s /dev/zero "$TMP/dax"
opened x 1
ok set pool-file "$TMP/dax"
ok open 1
ok persist 0 0 $MIB
for command in status why; do
	ctl $command "$TMP/dax" >"$TMP/out" 2>"$TMP/err" || fail "$command of a link to a device: $(cat "$TMP/err")"
done
ok close
# No size is told from it, and no command is named that takes files alone.
ctl why "$TMP/dax" >"$TMP/out" || fail "why of a link to a device"
grep -q "closed it in order" "$TMP/out" && grep -q "^reason *none" "$TMP/out" &&
	grep -q "^next *start the program, which compares" "$TMP/out" || fail "$(cat "$TMP/out")"
! grep -qE "rm |/dev/zero" "$TMP/out" || fail "$(cat "$TMP/out")"
opened x 1
ok set pool-file "$TMP/dax"
ok open 1
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
ctl why "$TMP/dax" >"$TMP/out" || fail "why of a link to a device"
grep -q "^next *start the program again: it compares" "$TMP/out" || fail "$(cat "$TMP/out")"
wait_for 20 no_sessions || fail "the session stays"
start_api
opened x 1
ok set pool-file "$TMP/dax"
ok open 1
ok close
# Nor by a record that can't be read is a device's own name put in place of the link.
cp "$TMP/dax.repl" "$TMP/record"
head -c 4096 /dev/zero >"$TMP/dax.repl"
ctl why "$TMP/dax" | grep -q "^next *rm $TMP/dax.repl, " || fail "$(ctl why "$TMP/dax")"
cp "$TMP/record" "$TMP/dax.repl"
# The replica's data are restored to that name, as both say: the link makes room for them.
aside="mv $TMP/dax $TMP/dax.device; replctl restore $T/x $TMP/dax; copy it to the device, then mv -f $TMP/dax.device $TMP/dax"
wait_for 20 no_sessions || fail "the session stays"
configure "$(pool x)"
ok device $MIB
ok set pool-file "$TMP/dax"
refused REPL_E_DIVERGED "zeros.* $aside, before the program starts; .*replctl remove $T/x" open 1
ctl_fails 4 "dax is a link, not a regular file" restore "$T/x" "$TMP/dax"
grep -qxF "next: where it is the pool-file of a device: $aside" "$TMP/err" || fail "$(cat "$TMP/err")"
mv "$TMP/dax" "$TMP/dax.device"
ctl restore "$T/x" "$TMP/dax" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
equal "$TMP/dax" "$TMP/serve/pools/x"
mv -f "$TMP/dax.device" "$TMP/dax"
[ -L "$TMP/dax" ] || fail "it is no link"
opened x 1
ok set pool-file "$TMP/dax"
ok open 1
ok compare 0
same
ok close

# A program that can't be asked now is no one that has ended.
python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(0)
c = [socket.socket(socket.AF_UNIX) for _ in range(8)]
try:
    for one in c:
        one.setblocking(False)
        one.connect(sys.argv[1])
except BlockingIOError:
    open(sys.argv[2], "w").close()
time.sleep(100)' "$TMP/dax.repl-sock" "$TMP/full" &
listener=$!
PIDS="$PIDS $listener"
wait_for 10 test -e "$TMP/full" || fail "the socket takes all"
ctl_fails 4 "too many are asking" status "$TMP/dax"
stop "$listener"
rm -f "$TMP/dax.repl-sock"

# Private memory: what formats it anew at each start would be copied over what the replica has of the run before.
private() {
	configure "$(pool v)"
	ok $1
	ok put 0 $MIB $2
	[ $# -lt 3 ] || ok set pool-file "$3"
}
for memory in "anon $MIB" "private $TMP/own $MIB"; do
	for file in "$TMP/device" "$TMP/own"; do
		private "$memory" 1 "$file"
		refused REPL_E_INVAL "private memory.* no record.*$file" open 1
	done
	private "$memory" 1
	ok open 1
	ok persist 0 0 $MIB
	ok close
	cp "$TMP/serve/pools/v" "$TMP/kept"
	private "$memory" 2 "$TMP/own"
	refused REPL_E_INVAL "private memory.* no record" open 1
	private "$memory" 2
	refused REPL_E_DIVERGED "no mapping of a regular file.* replctl restore [^ ]* FILE; .*replctl remove [^ ]*$" open 1
	equal "$TMP/kept" "$TMP/serve/pools/v"
	[ ! -e "$TMP/own.repl" ] || fail "there is a record of private memory"
	ctl remove "$T/v" --force >/dev/null 2>"$TMP/err" || fail "remove: $(cat "$TMP/err")"
done

stop "$SERVE_PID"
blank
refused REPL_E_REFUSED "zeros.*no replica that is reachable.*replctl restore TARGET/POOL $TMP/device; $copied" open 1

# behind_header: a pool behind a page that is the program's own.
behind_header() {
	configure "$(pool h)"
	ok map "$TMP/header" $MIB 4096
}

start_serve
behind_header
refused REPL_E_INVAL "byte 4096 of $TMP/header.*pool-file" open 1
[ ! -e "$TMP/serve/pools/h" ] && [ ! -e "$TMP/header.repl" ] || fail "something was made"
ln -s header "$TMP/link"
for name in header link; do
	ok set pool-file "$TMP/$name"
	refused REPL_E_INVAL "byte 4096 of $TMP/header.*pool-file" open 1
done
ok set pool-file "$TMP/part"
ok put 0 $MIB 1
ok open 1
ok persist 0 0 $MIB
ok close
[ -e "$TMP/part.repl" ] && [ ! -e "$TMP/header.repl" ] || fail "no record by the name that was given"
cmp -n $MIB "$TMP/header" "$TMP/serve/pools/h" 4096 0 >&2 || lost "the replica differs"
stop_api
