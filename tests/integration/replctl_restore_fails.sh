# SPDX-License-Identifier: BSD-3-Clause
# Whatever a restore fails at on this machine's disk, it tells where the data are and what to do, and does not take that
# disk for the target's.
. "$(dirname "$0")/fails_lib.sh"

# restore CALL PATTERN NEXT: what replaces FILE fails at that call.
restore() {
	file=$TMP/here/file
	rm -rf "$TMP/here"
	mkdir "$TMP/here"
	echo old >"$file"
	export CALL_FAILS="$1"
	ctl_fails 1 "$2" restore --force "$(pool p)" "$file"
	unset CALL_FAILS
	grep -q "^next: $3\(replctl .* restore --force $(pool p) $file\|then repeat the command\)" "$TMP/err" || fail "$1: $(cat "$TMP/err")"
	case $2 in
	"is restored"*) cmp "$TMP/source" "$file" || lost "$1: it is not restored" ;;
	*)
		[ "$(cat "$file")" = old ] || fail "$1: the file was replaced"
		[ ! -e "$file.repl" ] || fail "$1: there is a record where there was none"
		;;
	esac
	ctl restore --force "$(pool p)" "$file" >"$TMP/out" 2>&1 || fail "again: $(cat "$TMP/out")"
	cmp "$TMP/source" "$file" || lost "$1: it differs"
}

start_target
pool() {
	echo "$T/$1"
}
head -c 4M /dev/urandom >"$TMP/source"
ctl create --from "$TMP/source" "$(pool p)" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"

here="look at this machine's kernel log, then "
restore "pwritev 1" "not finished, .*restoring is kept: writing .*: Input/output error" "$here"
restore "fsync 1" "$TMP/here/file.repl: syncing the directory of " "${here% then *} "
restore "fsync 2" "not finished: syncing .*restoring, which is removed" "$here"
restore "rename 1" "not finished, .*restoring is kept: renaming .*: Device or resource busy" ""
restore "fsync 3" "is restored and whole, but without its record: syncing $TMP/here: " "mend that, then "

# What the record of the file tells, which a device does not give, may be that the file is the best there is.
file=$TMP/here/file
[ -s "$file.repl" ] || fail "there is no record"
cp "$file" "$TMP/before"
cp "$file.repl" "$TMP/before.repl"
export CALL_FAILS="pread 1-4"
ctl_fails 1 "$file.repl: .*Input/output error" restore --force "$(pool p)" "$file"
unset CALL_FAILS
grep -q "^next: look at this machine's kernel log; or, to keep what is there: mv -n $file $file.old; " "$TMP/err" ||
	fail "it says: $(cat "$TMP/err")"
cmp "$file" "$TMP/before" || lost "the file was replaced"
cmp "$file.repl" "$TMP/before.repl" || lost "the record was replaced"
# It is none that is damaged, and goes.
export CALL_FAILS="pread 1-4"
ctl --json why "$file" >"$TMP/out" || fail "why"
unset CALL_FAILS
[ "$(member reason <"$TMP/out")" = local ] || fail "why: $(cat "$TMP/out")"
grep -q "$file.repl: .*Input/output error" "$TMP/out" || fail "why: $(cat "$TMP/out")"
member next <"$TMP/out" | grep -q "^look at this machine's kernel log, then replctl why $file$" || fail "why: $(cat "$TMP/out")"
grep -q "rm \|believed" "$TMP/out" && lost "why: $(cat "$TMP/out")"

# Whose file it is it stays, and goes on with, when it could not get its place.
if [ "$(id -u)" -eq 0 ]; then
	rm -rf "$TMP/here"
	mkdir "$TMP/here"
	echo old >"$file"
	chown "$SERVE_USER" "$file"
	export CALL_FAILS="rename 1"
	ctl_fails 1 "renaming .*restoring to $file" restore --force "$(pool p)" "$file"
	unset CALL_FAILS
	[ "$(cat "$file")" = old ] || lost "the file was replaced"
	[ ! -e "$file.repl" ] || fail "there is a record where there was none"
	ctl restore --force "$(pool p)" "$file" >"$TMP/out" 2>&1 || fail "not gone on with: $(cat "$TMP/out")"
	cmp "$TMP/source" "$file" || lost "it differs"
	[ "$(stat -c %U "$file")" = "$SERVE_USER" ] || fail "it belongs to another"
else
	left_out "another user's file needs root"
fi

# told FILE: what its record tells.
told() {
	cp "$TMP/source" "$TMP/serve/pools/look"
	cp "$1.repl" "$TMP/serve/pools/look.repl" || fail "no $1.repl"
	[ "$(id -u)" -ne 0 ] || chown "$SERVE_USER" "$TMP/serve/pools/look" "$TMP/serve/pools/look.repl"
	ctl info --json "$(pool look)" >"$TMP/out" 2>&1 || fail "info: $(cat "$TMP/out")"
	for name in generation history state; do
		member $name <"$TMP/out"
	done
}

# A file that is left as it is keeps what its record knew: the step that is told then is not refused for want of it. Where
# it was killed, that is said, and what to do instead.
ctl create --from "$TMP/source" "$(pool d)" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
for part in pool other; do
	ctl restore "$(pool d)" "$TMP/$part" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
done
change "$TMP/pool" 9000
ctl sync "$TMP/pool" "$(pool elsewhere)" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
change "$TMP/other" 5000
ctl sync "$TMP/other" "$(pool d)" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
told "$TMP/pool" >"$TMP/knew"
grep -q up-to-date "$TMP/knew" || fail "it knows $(cat "$TMP/knew")"
for fails in "rename 1" "killed 1"; do
	rm -rf "$TMP/here"
	mkdir "$TMP/here"
	cp "$TMP/pool" "$file"
	cp "$TMP/pool.repl" "$file.repl"
	export CALL_FAILS="$fails"
	ctl resolve --force --discard local "$file" "$(pool d)" >"$TMP/out" 2>"$TMP/err" && fail "$fails: it does not fail"
	unset CALL_FAILS
	cmp "$file" "$TMP/pool" || lost "$fails: the file was replaced"
	if [ "$fails" = "killed 1" ]; then
		ctl_fails 4 "nothing is known of $file: a restore over it was cut off, and $file.repl tells nothing" \
			resolve --force --discard local "$file" "$(pool d)"
		next=$(sed -n 's/^next: .*; replctl .*\(restore --force [^(]*\) (.*/\1/p' "$TMP/err")
	else
		told "$file" >"$TMP/knows"
		diff "$TMP/knew" "$TMP/knows" || lost "$fails: the record does not tell what it did"
		next=$(sed -n 's/^next: .*replctl .*resolve \(--discard local [^(]*\).*/resolve --force \1/p' "$TMP/err")
	fi
	[ -n "$next" ] || fail "$fails: no next step: $(cat "$TMP/err")"
	# shellcheck disable=SC2086 # the words of a command line
	ctl $next >"$TMP/out" 2>&1 || fail "$fails: $next: $(cat "$TMP/out")"
	cmp "$file" "$TMP/other" || lost "$fails: not the replica's data"
done

# That it was promoted stands in the record, wherever a restore over it ends.
ctl promote "$(pool p)" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
is_primary() {
	for part in "" .repl; do
		cp "$file$part" "$TMP/serve/pools/look$part" || fail "$1: no $file$part"
		[ "$(id -u)" -ne 0 ] || chown "$SERVE_USER" "$TMP/serve/pools/look$part"
	done
	[ "$(ctl info --json "$(pool look)" | member primary)" = True ] || lost "$1: it is no primary any more"
}
for fails in "fsync 2" "rename 1" "killed 1"; do
	for part in "" .repl; do
		cp "$TMP/serve/pools/p$part" "$file$part"
	done
	change "$file" 5000
	cp "$file" "$TMP/before"
	export CALL_FAILS="$fails"
	ctl restore --force "$(pool p)" "$file" >"$TMP/out" 2>"$TMP/err" && fail "$fails: it does not fail"
	unset CALL_FAILS
	if [ "$fails" = "fsync 2" ]; then
		grep -q "without its record" "$TMP/err" || fail "$fails: $(cat "$TMP/err")"
		grep -q "^next: mend that, then replctl .*restore --force $(pool p) $file (" "$TMP/err" ||
			fail "$fails: $(cat "$TMP/err")"
	else
		cmp "$file" "$TMP/before" || lost "$fails: the file was replaced"
	fi
	is_primary "$fails"
	if [ "$fails" = "killed 1" ]; then
		ctl why "$file" >"$TMP/out" || fail "why"
		grep -q "closed it in order\|nothing wrong" "$TMP/out" && lost "all is called well: $(cat "$TMP/out")"
		grep -q "^reason *writer-gone: .*a restore .*cut off" "$TMP/out" &&
			grep -q "^next *replctl .*restore --force TARGET/POOL $file (goes on" "$TMP/out" || fail "why: $(cat "$TMP/out")"
	fi
	ctl restore --force "$(pool p)" "$file" >"$TMP/out" 2>&1 || fail "$fails: again: $(cat "$TMP/out")"
	cmp "$TMP/source" "$file" || lost "$fails: it differs"
	is_primary "$fails, and again"
done
