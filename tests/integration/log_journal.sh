# SPDX-License-Identifier: BSD-3-Clause
# The documentation's journal keeps its lines over a restore, and says what is wrong with a log that
# is damaged, of a newer version, or not there.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/lib.sh"

journal() {
	command=$1
	shift
	timeout 20 "$BUILD/packaging/journal" "$command" "$TMP/local" "$T/journal" "$@" \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" 2>"$TMP/journal.log"
}

lines() {
	seq "$1" "$2" | sed 's/^/line number /'
}

# poke FILE OFFSET HEX
poke() {
	python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    f.write(bytes.fromhex(sys.argv[3]))' "$@"
}

# refused PATTERN: opening fails with a text that matches.
refused() {
	journal list >"$TMP/out" && fail "opened where '$1' is due"
	grep -Eq "^journal: open: .*$1" "$TMP/journal.log" || fail "no '$1'"
}

start_target
lines 1 40 | journal append >"$TMP/positions" || fail "append"
[ "$(wc -l <"$TMP/positions")" -eq 40 ] || fail "not each line has a position"
lines 41 60 | journal append >>"$TMP/positions" || fail "append again"
journal list >"$TMP/out" || fail "list"
lines 1 60 | cmp - "$TMP/out" || lost "other lines"

# The machine is gone with its pool.
rm "$TMP/local" "$TMP/local.repl"
ctl restore "$T/journal" "$TMP/local" >/dev/null || fail "restore"
journal list >"$TMP/out" || fail "list after the restore"
lines 1 60 | cmp - "$TMP/out" || lost "other lines after the restore"

# Trimmed, and no line begins a byte further.
journal trim "$(sed -n 31p "$TMP/positions")" || fail "trim"
journal trim $(($(sed -n 40p "$TMP/positions") + 1)) && fail "trimmed to within a line"
grep -q "no record begins at" "$TMP/journal.log" || fail "no text"
journal trim 1000000 && fail "trimmed behind the end"
grep -q "the log ends at" "$TMP/journal.log" || fail "no text"
journal list >"$TMP/out" || fail "list after the trim"
lines 31 60 | cmp - "$TMP/out" || lost "other lines after the trim"

# Full: nothing is lost, and the text says what helps.
head -c 1500000 /dev/zero | tr '\0' x | fold -w 4000 | journal append >"$TMP/full" &&
	fail "more than the log can hold"
grep -q "repl_log_trim" "$TMP/journal.log" || fail "no word of trimming"
journal trim "$(tail -n 1 "$TMP/full")" || fail "trim a full log"
lines 61 70 | journal append >/dev/null || fail "append after the trim"
[ "$(journal list | tail -n 10 | md5sum)" = "$(lines 61 70 | md5sum)" ] || lost "lost lines"

# One header damaged: the other one serves. Both: refused, and nothing changed.
cp "$TMP/local" "$TMP/whole"
poke "$TMP/local" 60 ff
[ "$(journal list | tail -n 10 | md5sum)" = "$(lines 61 70 | md5sum)" ] || lost "lost lines"
poke "$TMP/local" 60 ff
poke "$TMP/local" 4156 ff
refused "both headers .* damaged.*replica"
poke "$TMP/local" 0 "$(printf '%016d' 0)"
poke "$TMP/local" 4096 "$(printf '%016d' 0)"
journal list >/dev/null || fail "no new log where none is"
