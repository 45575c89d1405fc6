# SPDX-License-Identifier: BSD-3-Clause
# What a refusal names as the next step can be typed as it stands, also where names need quotes.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
cd "$TMP" || exit 1
R=$(pool "it's")
T=${R%/*}
configure "$R"
ok map "$TMP/it's" $((1 * MIB))
ok open 1
ok put 0 $((1 * MIB)) 1
ok persist 0 0 $((1 * MIB))

replctl() {
	ctl "$@"
}

# typed DUE TEXT: the first command of the text ends with that status.
typed() {
	local command=${2#*replctl }

	command=${command%%;*}
	command=${command%% (*}
	(eval "replctl $command") >"$TMP/typed" 2>&1
	[ $? -eq "$1" ] || fail "'replctl $command' of '$2': $(cat "$TMP/typed")"
}

# next_step DUE PATTERN DUE-OF-NEXT ARG...: refused, and the first next step works.
next_step() {
	local due=$1 pattern=$2 then=$3

	shift 3
	ctl_fails "$due" "^next: $pattern" "$@"
	typed "$then" "$(sed -n 's/^next: //p' "$TMP/err")"
}

# A program has it open.
next_step 3 "replctl status '\./it'" 0 pause "it's" "$T/other"
next_step 9 "replctl why '\./it'" 0 wait "it's" --for standalone --timeout 0
next_step 4 "replctl status '\./it'" 0 sync "it's" "$R"
next_step 4 "replctl status '\./it'" 0 resolve --discard replica "it's" "$R"
next_step 4 "replctl status $T" 0 remove -f "$R"
next_step 4 "replctl info '$T/it'.*--force '$T/it'.*writer is ended" 0 promote "$R"

# The target is there, the pool is not; or what was meant is something else.
next_step 3 "replctl list $T" 0 restore "$T/none" copy
next_step 3 "replctl list $T" 0 info "$T/none"
next_step 3 ".*replctl status $T" 0 why "$T"
next_step 3 "replctl why '$T/isn'.*'t'" 0 newest "$T/isn't"
ctl_fails 3 "^next: " sync none "$R"
ctl_fails 8 "^next: .*--identity" list "$T" --identity none
ctl_fails 8 "^next: .*replctl --known-hosts /dev/null list $T" list "$T" --known-hosts /dev/null
ctl_fails 10 "^next: " list "$T" --config none
mkdir -m 700 locked && : >locked/file
if [ "$(id -u)" -ne 0 ]; then
	chmod 0 locked
	ctl_fails 4 "^next: .*as the user" status "$TMP/locked/file"
	chmod 700 locked
elif setpriv --reuid "$SERVE_USER" --clear-groups "$REPLCTL" --version >/dev/null 2>&1; then
	setpriv --reuid "$SERVE_USER" --clear-groups "$REPLCTL" status "$TMP/locked/file" 2>"$TMP/err"
	[ $? -eq 4 ] || fail "a file of another user: $(cat "$TMP/err")"
	grep -q "^next: .*as the user" "$TMP/err" || fail "no next step: $(cat "$TMP/err")"
else
	left_out "another user can't start replctl"
fi
ctl create "$T/new" --size 64K >/dev/null || fail "create"
next_step 4 "replctl info $T/new; replctl promote --force $T/new \(as it is\)" 0 promote "$T/new"
# As it was made it is no copy of anything, whatever its state is called.
ctl why "$T/new" >"$TMP/out" || fail "why of a pool as it was made"
grep -q "^reason *none: nothing has been copied into it" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -q "^next .*replctl sync FILE $T/new" "$TMP/out" || fail "$(cat "$TMP/out")"
for command in list status; do
	ctl $command "$T" | grep -A1 "^new " | grep -q "never written" || fail "$command: $(ctl $command "$T")"
done

# One whose first writer was gone before any copy: nothing to restore.
hold new write
stop "$HOLD_PID"
deserted() {
	ctl info "$T/new" | grep -q '^state .*unknown'
}
wait_for 20 deserted || fail "not unknown: $(ctl info "$T/new")"
ctl why "$T/new" >"$TMP/out" || fail "why of a new pool"
grep -q "^next .*replctl sync FILE $T/new" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -q "no copy into it has come to its end" "$TMP/out" || fail "$(cat "$TMP/out")"

# What a promoted replica is told to be, by the program and by the target.
ctl promote --force "$R" >/dev/null || fail "promote --force"
promoted() {
	[ "$(ctl status --json "./it's" | member replicas.0.reason)" = promoted ]
}
wait_for 10 promoted || fail "the program is not told of it: $(ctl status "./it's")"
# One next step, not the target's for who must give way beside it.
[[ $(ctl status --json "./it's" | member replicas.0.message) != *next:* ]] ||
	fail "two next steps: $(ctl status "./it's")"
for what in "./it's" "$R"; do
	ctl why "$what" >"$TMP/out" || fail "why $what"
	typed 0 "$(sed -n 's/^next *//p' "$TMP/out")"
	grep -q "^next .*replctl demote '$T/it'" "$TMP/out" || fail "not quoted: $(cat "$TMP/out")"
done

# The way back that RECOVERY.md has for one that was promoted by mistake.
ctl remove -f "$R" >/dev/null || fail "remove"
ctl resume "./it's" "$R" >/dev/null || fail "resume"
ctl wait "./it's" --timeout 20 >/dev/null || fail "not made anew: $(ctl status "./it's")"

# Nobody has it open.
ok close
next_step 3 "replctl why '\./it'" 0 status "./it's"
truncate -s 64K "it's"
ctl why "it's" >"$TMP/out" || fail "why of a file that was cut off"
grep -q "^reason .*the file is smaller than the record" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -q "^next .*rm 'it'.*'\.repl.*restore --dry-run --force TARGET/POOL 'it'" "$TMP/out" || fail "$(cat "$TMP/out")"
next_step 1 "replctl why '\./it'" 0 sync "it's" "$R"
truncate -s "$MIB" "it's"

# A name that begins with a dash is no option.
head -c 65536 /dev/urandom >./-dash
ctl sync -- -dash "$T/dash" >out 2>&1 || fail "sync: $(cat out)"
next_step 4 "replctl verify \./-dash $T/dash" 0 restore "$T/dash" -- -dash
next_step 3 "replctl why \./-dash" 0 wait --timeout 0 -- -dash

# A file that has grown since it was copied.
head -c 65536 /dev/urandom >grown
ctl sync grown "$T/grown" >out 2>&1 || fail "sync: $(cat out)"
truncate -s 128K grown
ctl_fails 4 "65536" sync grown "$T/grown" --dry-run
next_step 4 "replctl grow $T/grown --size 131072 " 0 sync grown "$T/grown"
ctl sync grown "$T/grown" >out 2>&1 || fail "sync of what has grown: $(cat out)"
ctl verify grown "$T/grown" >out 2>&1 || lost "verify: $(cat out)"
truncate -s 64K grown
next_step 1 "replctl why '?\\./grown'?" 0 sync grown "$T/grown"
# Put back from a backup of before: no replica shrinks, it is made anew.
rm grown.repl
next_step 4 "replctl restore $T/grown OTHER-FILE " 0 sync --force grown "$T/grown"
equal OTHER-FILE serve/pools/grown
typed 0 "$(sed -n 's/^next: [^;]*; \(replctl remove [^ ,]*\), then.*/\1 -f/p' err)"
typed 0 "$(sed -n 's/^next: .*, then \(replctl sync [^(]*\) (all of it); .*/\1/p' err)"
equal grown serve/pools/grown
next_step 4 "replctl verify '\./it'" 1 restore "$R" "./it's"
