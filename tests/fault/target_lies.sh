# SPDX-License-Identifier: BSD-3-Clause
# A target whose answers are of a wrong type, cut off, late, not asked for or full of control
# characters gets replctl a clear, printable error in time, and costs no good file; a library that is
# told something else than it has recorded calls no replica up to date.
. "$(dirname "$0")/../integration/api_lib.sh"
. "$(dirname "$0")/liar.sh"
printf '[repl]\nconnect-timeout = 30000\nop-timeout = 2000\nclose-timeout = 1000\n' >"$TMP/repl.conf"
export REPL_CONFIG=$TMP/repl.conf
head -c 1M /dev/urandom >"$TMP/good"
cp "$TMP/good" "$TMP/file"
ctl sync "$TMP/file" "$T/p" >/dev/null 2>&1 || fail "no replica"

# refuses PATTERN COMMAND...: with a text that can be printed, soon.
refuses() {
	pattern=$1
	shift
	timeout 60 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" "$@" \
		</dev/null >"$TMP/out" 2>"$TMP/err"
	status=$?
	[ "$status" -gt 0 ] && [ "$status" -lt 100 ] ||
		fail "status $status with $(cat "$LIES"): replctl $*: $(cat "$TMP/err")"
	[ "$status" -ne 2 ] || fail "called wrong usage with $(cat "$LIES"): replctl $*: $(cat "$TMP/err")"
	grep -q "^replctl: .*$pattern" "$TMP/err" ||
		fail "no '$pattern' with $(cat "$LIES"): replctl $*: $(cat "$TMP/err")"
	! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177-\377]')" "$TMP/out" "$TMP/err" ||
		fail "not printable with $(cat "$LIES"): replctl $*"
}

# Results that are none.
for value in null '[{}]' '"text"' 5; do
	lie '{"method": "*", "nth": 1, "set": ["result"], "value": '"$value"'}'
	refuses "result that is not an object" list "$T"
	for command in probe list status "info /p" "why /p"; do
		set -- $command
		lie '{"method": "hello"},
			{"method": "*", "set": ["result"], "value": '"$value"'}'
		case $1 in
		why) ctl why "$T/p" >"$TMP/out" 2>&1 || fail "why: $(cat "$TMP/out")" ;;
		*) refuses "result that is not an object" "$1" "$T${2-}" ;;
		esac
	done
done

# Answers that end, stay away, come twice or to nobody, or are no messages.
for do in close drop stall half; do
	lie '{"method": "pool.info", "do": "'$do'"}'
	refuses . info "$T/p"
done
for line in 'null' '{}' '\\u00ff\\u00fe' '[[[[[[[[[[[[' '{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}'; do
	lie '{"method": "pool.info", "line": "'"$line"'\n"}'
	refuses . info "$T/p"
	lie '{"method": "hello", "after": "'"$line"'\n"}'
	refuses . info "$T/p"
done

# What is said in words.
words='\u001b[31m\u009b31m\u0007\u007f'
lie '{"method": "pool.info", "set": [], "value": {"jsonrpc": "2.0", "id": 2, "error":
	{"code": -32004, "message": "'$words'", "data": {"status": "busy", "next": "'$words'"}}}}'
refuses . info "$T/p"
for member in name state class filesystem writer generation sidecar; do
	lie '{"method": "pool.info", "set": ["result", "'$member'"], "value": "'$words'"}'
	ctl info "$T/p" >"$TMP/out" 2>&1
	LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177-\377]')" "$TMP/out" &&
		fail "$member is not made printable"
done

# What lacks a member, or has another type, is named, and is no wrong argument of who asked.
for lie in 'list pool.list more' 'status status sessions'; do
	set -- $lie
	lie '{"method": "'$2'", "set": ["result", "'$3'"], "value": "text"}'
	refuses "answer to $2: '$3'" "$1" "$T"
done
for lie in 'pool.extents next' 'pool.hash hashes' 'pool.open epoch' 'pool.open size'; do
	set -- $lie
	lie '{"method": "'$1'", "set": ["result", "'$2'"], "value": {}}'
	refuses "answer .*'$2'" restore "$T/p" "$TMP/none"
done

# A list without end, or in no order, or that stops before its end.
lie '{"method": "pool.list", "set": ["result"], "value": {"pools": [{"name": "p"}], "more": true}}'
refuses "not in order" list "$T"
lie '{"method": "pool.list", "set": ["result"], "value": {"pools": [], "more": true}}'
refuses "without a pool that says more follow" list "$T"
lie '{"method": "status", "set": ["result"], "value": {"sessions": [{"session": "1", "pool": "p"}], "sessions_more": true}}'
refuses "not in order" status "$T"

# A file is replaced by the whole of a replica or stays.
head -c 1M /dev/urandom >"$TMP/file"
cp "$TMP/file" "$TMP/mine"
rm -f "$TMP/file.repl"
for lie in '"method": "pool.open", "set": ["result", "size"], "value": 9223372036854771712' \
	'"method": "pool.open", "set": ["result", "size"], "value": 1052672' \
	'"method": "pool.open", "set": ["result", "history"], "value": [[]]' \
	'"method": "pool.hash", "set": ["result", "hashes"], "value": "00"' \
	'"method": "pool.hash", "do": "close"' '"method": "pool.hash", "do": "stall"' \
	'"method": "lanes.open", "set": ["result", "port"], "value": 1' \
	'"method": "lanes.open", "set": ["result", "lanes"], "value": []' \
	'"method": "lanes.open", "set": ["result", "rma_region"], "value": 1048577' \
	'"method": "lanes.open", "set": ["result", "key"], "value": "zzzzzzzzzzzzzzzz"'; do
	rm -f "$TMP/file.restoring"
	lie "{$lie}"
	refuses . restore --force "$T/p" "$TMP/file"
	cmp -s "$TMP/file" "$TMP/mine" || lost "the file was changed with $lie"
done
for lie in '"next"], "value": 0' '"extents"], "value": [[0, 9223372036854775807]]' \
	'"extents"], "value": [[-4096, 4096]]'; do
	lie '{"method": "pool.extents", "set": ["result", '"$lie"'}'
	refuses "pool.extents" restore "$T/p" "$TMP/new"
	[ ! -e "$TMP/new" ] || fail "a file was made with $lie"
done
lie ''
rm -f "$TMP/file.restoring"
ctl restore --force "$T/p" "$TMP/file" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
cmp "$TMP/file" "$TMP/good" || lost "the restored file differs"

# A library believes that it is recorded what the target says that is.
start_api
for lie in '["result", "state"], "value": "unknown"' \
	'["result", "generation"], "value": "11111111-1111-4111-8111-111111111111"'; do
	lie '{"method": "pool.mark", "set": '"$lie"'}'
	configure "$T/p"
	ok set on-loss fail
	ok map "$TMP/file" $MIB
	refused REPL_E_PROTOCOL "recorded something else" open
done

lie '{"method": "lanes.open", "set": ["result", "port"], "value": 0}'
ok map "$TMP/file" $MIB
refused REPL_E_PROTOCOL "answer .*'port' is 0" open
lie '{"method": "lanes.open", "set": ["result", "provider"], "value": "sockets"}'
refused REPL_E_PROTOCOL "provider 'sockets' was not asked for" open

# A growth that is refused is given up, whatever the target says to that; the program goes on.
lie '{"method": "pool.grow", "nth": 1, "refuse": "nospc"},
	{"method": "pool.grow", "members": {"header": 0, "header_damage": 5}}'
configure "$T/grown"
ok map "$TMP/grown" $MIB
ok open 1
ok extend $((2 * MIB))
refused REPL_E_NOSPC "refused" grow $((2 * MIB))
ok persist 0 0 64
ok close
stop_api
