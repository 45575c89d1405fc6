# SPDX-License-Identifier: BSD-3-Clause
# What a call was given to reach the target by, options that somebody without a configuration needs, stands in the next step.
. "$(dirname "$0")/api_lib.sh"
unset REPL_CONFIG
start_target
cd "$TMP" || exit 1
head -c 64K /dev/urandom >p
ctl sync p "$T/p" >out 2>&1 || fail "sync: $(cat out)"
mkdir -p "my keys"
cp key "my keys/id"
cp known_hosts "my keys/known"
printf '[repl]\nop-timeout = 20000\n' >"my keys/conf"
given() {
	"$REPLCTL" --identity "my keys/id" --known-hosts "my keys/known" --config "my keys/conf" "$@" </dev/null
}
# As typed by somebody who has no configuration.
as_given() {
	(eval "$(sed -n 's/^next[: ] *//p' out | sed 's/, then .*//; s/^replctl/"$REPLCTL"/')") >typed 2>&1 ||
		fail "typed: $(cat out typed)"
}
given remove "$T/p" >out 2>&1 && fail "removed without being asked"
as_given
given newest "$T/p" >out 2>&1 || fail "newest: $(cat out)"
sed -i 's/ FILE$/ from-newest/' out
as_given
cmp -s p from-newest || lost "what newest named"
given why "$T/none" >out 2>&1
sed -n 's/^ \{10\}//p; s/^next *//p' out | tr '\n' ' ' | grep -q "replctl --config 'my keys/conf' --identity 'my keys/id' --known-hosts 'my keys/known' list $T" ||
	fail "why: $(cat out)"

# So does it in what a program that has the file open tells of its replicas, since it does not know how they are reached.
start_api
configure "$(pool q)"
ok map "$TMP/q" 65536
ok open 1
ctl pause ./q >out 2>&1 && ctl promote "$T/q" >out 2>&1 || fail "promote: $(cat out)"
ctl resume ./q >out 2>&1
is_promoted() {
	ctl why ./q | grep -q "^reason *promoted"
}
wait_for 20 is_promoted || fail "why: $(ctl why ./q 2>&1)"
by_options="replctl --config 'my keys/conf' --identity 'my keys/id' --known-hosts 'my keys/known' info $T/q;"
for command in status why; do
	given --json "$command" ./q >out 2>&1
	grep -Fq "\"next\": \"$by_options" out || fail "$command --json: $(cat out)"
	given "$command" ./q >out 2>&1
	grep -q "^next *$by_options" out || fail "$command: $(cat out)"
done
sed -i 's/;.*//' out
as_given
grep -q "promoted" typed || fail "not what info tells: $(cat typed)"
