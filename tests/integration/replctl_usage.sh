# SPDX-License-Identifier: BSD-3-Clause
# Each kind of failure has its exit status, its text and, with --json, its object.
. "$(dirname "$0")/lib.sh"
start_target

for words in "" "nonsense" "list" "list a b" "list $T --force" "info" "info $T" "list $T/pool" \
	"create $T/p" "create $T/p --size 4096 --from f" "create $T/p --size 4096 --pool f" \
	"run --sparse --replica $T/p --pool f -- true" "sync f" "list --wrong $T" "list $T -c"; do
	# shellcheck disable=SC2086
	ctl_fails 2 "^next: " $words
done
ctl_fails 2 "resume takes 1 or 2 arguments, got 3" resume f "$T/p" "$T/q"
ctl_fails 2 "list takes 1 argument, got 2" list "$T" b
ctl_fails 2 "^next: replctl help create" create "$T/p" --size 5e3
ctl_fails 2 "--size '0' is not a positive number" grow "$T/p" --size 0
# The option that is wrong is named, not the word beside it.
ctl_fails 2 "option '-z' is not known" remove -zf "$T/p"
ctl_fails 2 "option '--force' takes no value" remove --force=1 "$T/p"
ctl_fails 2 "option '-c' needs a value" list "$T" -c
# A file that was taken for a target.
mkdir "$TMP/of us" && : >"$TMP/of us/pool"
cd "$TMP" || exit 1
for command in status events why; do
	ctl_fails 2 "^next: if the file of this name is meant:.* './of us/pool'" $command "of us/pool"
done
mv "of us" of_us
ctl_fails 2 "^next: if the file of this name is meant: ./of_us/pool" status of_us/pool
# ... not where no file can be meant.
: >nohost.invalid && : >no_host
ctl_fails 7 "^next: if the file of this name is meant: ./nohost" status nohost.invalid
ctl_fails 10 "^next: if the file of this name is meant: ./no_host" status no_host
for words in "list of_us/pool" "bench of_us/pool" "list nohost.invalid" "probe nohost.invalid"; do
	# shellcheck disable=SC2086
	ctl $words >"$TMP/out" 2>&1
	grep -q "file of this name" "$TMP/out" && fail "$words: a file is advised: $(cat "$TMP/out")"
done
ctl why of_us/pool | grep -q "^next .*meant: replctl why ./of_us/pool" || fail "why of a file"
ctl_fails 2 "^next: .* --pool 'of us' --" run --pool "of us" -- true
# As many pools and replicas as PMDK.md says are taken, by the library too.
many=() sets=()
for p in $(seq 32); do
	for r in $(seq 16); do
		many+=(--replica "$T/$p-$r")
	done
	many+=(--pool "many-$p")
done
for _ in $(seq 64); do
	sets+=(--set lanes=2)
done
# The sanitizers' runtime comes with the program.
sanitized || ctl run "${many[@]}" "${sets[@]}" -- true >"$TMP/out" 2>&1 ||
	fail "32 pools of 16 replicas: $(cat "$TMP/out")"
grep -q "more than" "$TMP/out" && fail "not all of 32 pools: $(cat "$TMP/out")"
ctl_fails 2 "more than 32 pools" run "${many[@]}" --replica "$T/p" --pool more -- true
ctl_fails 2 "'many-1' has 17 replicas" run --replica "$T/p" "${many[@]:0:34}" -- true
ctl_fails 2 "more than 64 settings" run "${many[@]:0:34}" "${sets[@]}" --set lanes=2 -- true
ctl help | grep -q "^  restore " || fail "help"
# A terminal of 80 columns shows all of it, and texts stand in their columns.
for words in "" create run plan status wait "bench remotelog"; do
	# shellcheck disable=SC2086
	ctl help $words >"$TMP/out" || fail "help $words"
	grep -q '.\{80\}' "$TMP/out" && fail "help $words is too wide: $(cat "$TMP/out")"
done
ctl help | sed -n '/^  create/,/^  help/p' >"$TMP/out"
grep -v -e '^.\{31\} [^ ]' -e '^  [^ ].* [^ ]' "$TMP/out" && fail "a text of the help is out of its column"
ctl help run | grep -q -- "--sparse" && fail "help of a command has an option of another one"
ctl help sync | grep -q -- "--dry-run" || fail "help of a command"
[ "$(ctl help help)" = "$(ctl help)" ] || fail "help of help"
[ "$(ctl restore --help)" = "$(ctl help restore)" ] || fail "--help of a command"
ctl --version | grep -q "^replctl [0-9]" || fail "version"

ctl_fails 10 "path is empty" list "$T" --config ""
ctl_fails 7 "^next: " list 127.0.0.1:1
ctl_fails 10 "^replctl: db_backup: .*host name, only .*another alias" list db_backup
"$REPLCTL" -i "$TMP/other_key" --known-hosts "$TMP/known_hosts" list "$T" >"$TMP/out" 2>&1
[ $? -eq 8 ] || fail "wrong key: $(cat "$TMP/out")"
"$REPLCTL" -i "$TMP/key" --known-hosts /dev/null list "$T" >"$TMP/out" 2>&1
[ $? -eq 8 ] || fail "unknown host: $(cat "$TMP/out")"
printf '[repl]\nnonsense = 1\n' >"$TMP/bad.conf"
ctl_fails 10 "bad.conf:2: key 'nonsense'" list "$T" --config "$TMP/bad.conf"
ctl_fails 10 "none.conf" --config "$TMP/none.conf" list "$T"
printf '[repl]\nidentity = %s\nknown-hosts = %s\n' "$TMP/key" "$TMP/known_hosts" >"$TMP/repl.conf"
REPL_CONFIG=$TMP/repl.conf "$REPLCTL" list "$T" >/dev/null || fail "REPL_CONFIG"

ctl list "$T" --json --wrong >"$TMP/out" 2>/dev/null
[ "$(member error.status <"$TMP/out")" = inval ] || fail "JSON of a wrong option"
ctl info "$T/none" --json >"$TMP/out" 2>/dev/null
[ "$(member error.exit <"$TMP/out")" = 3 ] || fail "JSON of not found"
member error.next <"$TMP/out" | grep -q "^replctl list" || fail "next step in JSON"
ctl create "$T/p" --size 64K --json | python3 -m json.tool >/dev/null || fail "create --json"
for query in "list $T" "info $T/p" "probe $T" "probe $T/p" "status $T"; do
	# shellcheck disable=SC2086
	ctl --json $query | python3 -m json.tool >/dev/null || fail "--json $query"
done
ctl list "$T" >/dev/full 2>"$TMP/err" && fail "a full output is no success"
# Also where it is more than a buffer's worth, and where it goes on.
for query in "plan --all --json" "probe $T --json" "status $T --watch"; do
	# shellcheck disable=SC2086
	timeout 20 "$REPLCTL" -i "$TMP/key" --known-hosts "$TMP/known_hosts" $query >/dev/full 2>"$TMP/err"
	[ $? -eq 1 ] || fail "a full output of $query is no success, and ends it"
done
# Nothing that is opened takes the place of a closed output, and gets the text that is meant for it.
head -c 65536 /dev/urandom >"$TMP/file"
ctl sync "$TMP/file" "$T/closed" >/dev/null || fail "sync"
for query in "list $T" "info $T/closed" "restore $T/closed $TMP/copy"; do
	# shellcheck disable=SC2086
	ctl $query 2>"$TMP/err" >&- && fail "a closed output of $query is no success"
	grep -q "writing the output failed" "$TMP/err" || fail "$query, output closed: $(cat "$TMP/err")"
done
cmp "$TMP/file" "$TMP/copy" || lost "what was restored with a closed output"
# No name drives a terminal, also where all is well.
escape=$(printf 'red\033[31m')
cp "$TMP/file" "$TMP/$escape"
for query in "sync $TMP/$escape $T/closed" "restore -n -f $T/closed $TMP/$escape" \
	"restore -f $T/closed $TMP/$escape"; do
	# shellcheck disable=SC2086
	ctl $query >"$TMP/out" 2>&1 || fail "$query: $(cat "$TMP/out")"
	grep -q "red?.31m" "$TMP/out" || fail "$query: $(cat -v "$TMP/out")"
done
ctl remove --force "$T/closed" <&- 2>&- >"$TMP/out" || fail "all but the output closed"
# Without /dev/null: needed where one is closed, and missed aloud.
if unshare -m true 2>/dev/null; then
	unshare -m sh -c 'mount -t tmpfs none /dev && exec "$0" --version' "$REPLCTL" >"$TMP/out" 2>&1 ||
		fail "without /dev: $(cat "$TMP/out")"
	unshare -m sh -c 'mount -t tmpfs none /dev && exec "$0" --version <&-' "$REPLCTL" >"$TMP/out" 2>&1 &&
		fail "nothing takes the place of standard input"
	grep -q "descriptor 0 is closed.*/dev/null" "$TMP/out" || fail "not said: $(cat "$TMP/out")"
else
	left_out "no mount namespace"
fi
exit 0
