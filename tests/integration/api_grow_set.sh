# SPDX-License-Identifier: BSD-3-Clause
# A pool in directories, with a local replica, grows while four lanes write; the pool, the local replica
# and the initiator's range agree, and one that has no room left keeps all as it was.
. "$(dirname "$0")/api_lib.sh"
# The pool is one persist of 32 MiB, by messages and with a local replica: longer than 1.5 s on a busy machine.
OP_TIMEOUT=10000

# The first bytes of a section: its files one behind the other.
section() {
	(cd "$TMP/serve/pools" && find "$@" -name "*.pmem" | sort -t/ -k2 | xargs cat 2>/dev/null) | head -c "$size"
}

# files DIR...: how many there are.
files() {
	(cd "$TMP/serve/pools" && ls "$@" | grep -c pmem)
}

agree() {
	section d e | cmp - "$TMP/local" || lost "$1: the pool differs"
	section r | cmp - "$TMP/local" || lost "$1: the local replica differs"
}

# set_file LINE...: of the pool.
set_file() {
	printf '%s\n' PMEMPOOLSET "OPTION NOHDRS" "$@" >"$TMP/serve/pools/p"
}

make_keys
start_serve
start_api
for dir in d e r; do
	mkdir "$TMP/serve/pools/$dir"
	[ "$(id -u)" != 0 ] || chown --reference="$TMP/serve/pools" "$TMP/serve/pools/$dir"
done
set_file "20M d" "20M e" REPLICA "40M r"
configure "$(pool p)"
ok set lanes 6
ok map "$TMP/local" $((8 * MIB))
ok open 1
[ "$(files d e)" = 1 ] || fail "$(files d e) files for the beginning"
ok load 4 $((8 * MIB))
for mib in 9 17 32; do
	size=$((mib * MIB))
	ok extend "$size"
	ok grow "$size"
	ok put $((size - MIB)) $MIB "$mib"
	# Large and small, in the new part, and across its beginning.
	ok persist 4 $((size - MIB)) $MIB
	ok persist 5 $((size - MIB + 8)) 8
	ok persist 4 $((7 * MIB)) $((2 * MIB))
done
ok unload
[ "${TEXT%% *}" -gt 4 ] || fail "no load: $TEXT"
ok persist 0 0 "$size"
ok compare 0
same
[ "$(files d e)" = 2 ] || fail "$(files d e) files for all"
agree "grown"
ok grow "$size"
ok close
agree "closed"
ok open
ok compare 0
same
ok extend $((48 * MIB))
refused REPL_E_REFUSED "are given 41943040 bytes, too few" grow $((48 * MIB))
ok persist 0 0 "$size"
# What is raised counts for who has the pool open; that of other lines does not.
set_file "30M e" "30M d" REPLICA "60M r"
refused REPL_E_REFUSED "are given 41943040 bytes, too few" grow $((48 * MIB))
set_file "30M d" "30M e"
refused REPL_E_REFUSED "are given 41943040 bytes, too few" grow $((48 * MIB))
set_file "30M d" "30M e" REPLICA "40M r"
refused REPL_E_REFUSED "are given 41943040 bytes, too few" grow $((48 * MIB))
set_file "30M d" "30M e" REPLICA "60M r"
size=$((48 * MIB))
ok grow $size
ok put $((33 * MIB)) $((15 * MIB)) 48
ok persist 0 $((33 * MIB)) $((15 * MIB))
ok compare 0
same
ok close
agree "raised"
[ "$(files r)" = 3 ] || fail "$(files r) files of the local replica"

# By the tool, with nobody at it; no further than the set file says.
ctl grow "$(pool p)" --size 49M >"$TMP/out" 2>&1 || fail "grow: $(cat "$TMP/out")"
ctl info "$(pool p)" | grep -q "^size  *49.0 MiB" || fail "$(ctl info "$(pool p)")"
ctl_fails 4 "too few for a pool of 67108864: raise their sizes" grow "$(pool p)" --size 64M
set_file "40M d" "40M e" REPLICA "80M r"
ctl grow "$(pool p)" --size 64M >"$TMP/out" 2>&1 || fail "grow: $(cat "$TMP/out")"
[ "$(files r)" = 4 ] || fail "$(files r) files of the local replica"

# Files do not grow, and it is said.
printf 'PMEMPOOLSET\nOPTION NOHDRS\n8M one\n' >"$TMP/serve/pools/q"
ctl create "$(pool q)" --size 4M >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
ctl grow "$(pool q)" --size 8M >"$TMP/out" 2>&1 || fail "grow: $(cat "$TMP/out")"
ctl_fails 4 "lies in the files of a set, which hold 8388608 bytes and do not grow" grow "$(pool q)" --size 9M
