# SPDX-License-Identifier: BSD-3-Clause
# A log of a newer version, or whose header says what can't be, is refused with a text that says what
# to do, and not a byte of it changes.
. "$(dirname "$0")/fault.sh"
FORGE=$BUILD/tests/fault/log_forge
JOURNAL=$BUILD/packaging/journal

journal() {
	timeout 20 "$JOURNAL" "$1" "$TMP/log" "$target" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" 2>"$TMP/journal.log"
}

# forged PATTERN AT WIDTH VALUE
forged() {
	cp "$TMP/whole" "$TMP/log"
	"$FORGE" "$TMP/log" "$2" "$3" "$4" || fail "log_forge"
	cp "$TMP/log" "$TMP/before"
	journal list >"$TMP/out"
	[ $? -eq 1 ] || fail "opened, or died, where '$1' is due"
	grep -Eq "^journal: open: .*$1" "$TMP/journal.log" || fail "no '$1'"
	cmp -s "$TMP/log" "$TMP/before" || lost "$1: the log was changed"
}

start_target
target=$target/log
seq 1 100 | journal append >/dev/null || fail "append"
# What this open finds must be there from now on.
journal list >"$TMP/out" || fail "list"
cp "$TMP/log" "$TMP/whole"

forged "version 2, this is 1: update librepl" 8 2 2
forged "version 65535" 8 2 65535
forged "damaged \(size of the area\)" 32 8 1052672
forged "damaged \(size of the area\)" 32 8 0xfffffffffffff000
forged "damaged \(tail kind\)" 40 4 5
forged "damaged \(alignment" 44 4 1
forged "damaged \(head\)" 56 8 0x8000000000000000
forged "damaged \(reserved" 200 1 1
# Fields that each keep the rules and do not fit the records.
forged "record at 0 is damaged" 48 8 12345
forged "record at [0-9]* is damaged" 64 8 0x7fffffffffffffc0
forged "tail is said to be at 0" 40 4 2
forged "was opened 4294967295 times" 72 4 4294967295
forged "near the end of the numbers" 24 8 0x7fffffffffffffff
no_signal_deaths
