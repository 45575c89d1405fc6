# SPDX-License-Identifier: BSD-3-Clause
# A replica in directories of the target has the files that it needs, which PMDK's tools read there as one set.
. "$(dirname "$0")/compat_lib.sh"
start_compat
mkdir "$POOLS/d" "$POOLS/e"
# As pmempool's user makes it: repld's is another one where the test is root's.
chmod 0777 "$POOLS/d" "$POOLS/e"
target_set rem.set "OPTION SINGLEHDR" "200M $POOLS/d" "200M $POOLS/e"
printf 'PMEMPOOLSET\nOPTION SINGLEHDR\n140M %s\nREPLICA %s rem.set\n' "$TMP/part0" "$T" \
	>"$TMP/local.set"

# tool COMMAND...: pmempool on the target's set, without the initiator's library.
tool() {
	target_run pmempool "$@" "$POOLS/rem.set" >"$TMP/out" 2>&1 || fail "$*: $(cat "$TMP/out")"
}

# On what size there are files: "000000.pmem 134217728" and so on.
files() {
	(cd "$POOLS" && stat -c '%n %s' ./*/*.pmem)
}

make_pool
[ "$(files)" = "./d/000000.pmem 134217728
./e/000001.pmem 12582912" ] || fail "files: $(files)"
filled=$(fill 200) || exit 1
tool info
grep -q "Directory-based" "$TMP/out" || fail "info: $(cat "$TMP/out")"
tool check
ctl info "$T/rem.set" | grep -q "^part  *e/000001.pmem, " || fail "$(ctl info "$T/rem.set")"
lose_and_sync "$filled"

# Of another size than the initiator's part it could not be compared with that any more.
ctl_fails 4 "has headers" grow "$T/rem.set" --size 160M
[ "$(files)" = "./d/000000.pmem 134217728
./e/000001.pmem 12582912" ] || fail "files: $(files)"
filled=$(fill 5) || exit 1
lose_and_sync "$filled"

# A file that is gone is told by its number, one of the other directory's by nothing.
mv "$POOLS/d/000000.pmem" "$TMP/away"
pmdk_fails "file 000000.pmem is missing" "$FILL" check "$TMP/local.set" test
mv "$TMP/away" "$POOLS/d/000000.pmem"
mv "$POOLS/e/000001.pmem" "$TMP/away"
pmdk_fails "its parts hold 134213632 bytes" "$FILL" check "$TMP/local.set" test
mv "$TMP/away" "$POOLS/e/000001.pmem"
walk >/dev/null || exit 1

# Too little room is refused, with the two sizes; what is there is not replaced.
pmdk pmempool rm -f "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
[ -z "$(ls "$POOLS/d" "$POOLS/e" | grep pmem)" ] || fail "left: $(files)"
[ -d "$POOLS/d" ] || fail "the administrator's directory is gone"
target_set rem.set "OPTION SINGLEHDR" "60M $POOLS/d" "60M $POOLS/e"
: >"$TMP/rpmem.log"
pmdk_fails "its parts hold 125825024 bytes" pmempool create obj --layout=test "$TMP/local.set"
rm -f "$TMP/part0"
target_set rem.set "OPTION SINGLEHDR" "200M $POOLS/d" "200M $POOLS/e"
truncate -s 8M "$POOLS/e/000000.pmem"
pmdk_fails "its directories hold 'e/000000.pmem'" pmempool create obj --layout=test "$TMP/local.set"
