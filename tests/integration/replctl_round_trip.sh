# SPDX-License-Identifier: BSD-3-Clause
# What was synced comes back byte for byte, and only what differs is moved.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
size=$((24 * 1024 * 1024 + 4096))
head -c "$size" /dev/urandom >pool
for off in 5000000 9000000; do # what is written there later differs from it
	printf . | dd of=pool bs=1 seek=$off conv=notrunc status=none
done
cp pool saved

[ "$(ctl sync --dry-run --json pool "$T/p" | member moved)" = "$size" ] || fail "dry run"
ctl_fails 3 "not found" info "$T/p"
ctl sync pool "$T/p" >/dev/null || fail "first sync"
cmp -s pool serve/pools/p || lost "the replica is not the pool"
[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "state"
[ "$(ctl sync --json pool "$T/p" | member moved)" = 0 ] || fail "an equal pool moved"
ctl sync pool "$T/p" | grep -q 'nothing differed, nothing was moved; 24.0 MiB of data compared in' ||
	fail "what is told of an equal pool"
truncate -s 64M holes
ctl sync holes "$T/holes" | grep -q 'nothing differed.*; 0 B of data compared.*(0 B/s)' ||
	fail "what is told of holes"
ctl verify pool "$T/p" >/dev/null || lost "equal, and verify fails"

before=$(ctl info --json "$T/p" | member generation)
printf x | dd of=pool bs=1 seek=5000000 conv=notrunc status=none
[ "$(ctl sync --json pool "$T/p" --dry-run | member moved)" = 65536 ] || fail "dry run of a byte"
ctl sync pool "$T/p" --dry-run | grep -q "^would move at most 64.0 KiB of " || fail "a bound is told as what moves"
cmp -s saved serve/pools/p || lost "a dry run has changed the replica"
[ "$(ctl sync --json pool "$T/p" | member moved)" = 4096 ] || fail "a byte moved more than its page"
[ "$(ctl info --json "$T/p" | member history.0)" = "$before" ] || fail "no new generation"
cmp -s pool serve/pools/p || lost "the replica is not the changed pool"

cp pool saved
rm pool
ctl restore "$T/p" pool --dry-run >/dev/null || fail "dry run of a restore"
[ ! -e pool ] || fail "a dry run has restored"
ctl restore "$T/p" pool >/dev/null || fail "restore"
cmp -s pool saved || lost "restored data differ"
[ ! -e pool.restoring ] || fail "the temporary file stays"
[ "$(stat -c %a pool)" = 600 ] || fail "mode of a restored file"
[ "$(ctl sync --json pool "$T/p" | member moved)" = 0 ] || fail "sync after restore"

# A file that is there is not replaced but by force; then its likeness is made use of.
chmod 640 pool
ctl_fails 4 "next: .*restore --force $T/p pool" restore "$T/p" pool
printf y | dd of=pool bs=1 seek=9000000 conv=notrunc status=none
[ "$(ctl restore --force --json "$T/p" pool | member moved)" = 65536 ] || fail "restore moved more"
cmp -s pool saved || lost "replaced data differ"
[ "$(stat -c %a pool)" = 640 ] || fail "mode of a replaced file"

# What is a hole on the target takes its space here, as it has it there.
ctl create "$T/empty" --size 8M >/dev/null || fail "create"
[ "$(ctl restore --force --json "$T/empty" empty | member moved)" = 0 ] || fail "holes were moved"
[ "$(stat -c '%b * %B >= %s' empty | sed 's/^/echo $((/; s/$/))/' | sh)" = 1 ] ||
	fail "a restored file has holes: $(stat -c '%b of %s' empty)"

# A pool of zeros takes the data of a file, once.
ctl create "$T/q" --from pool >/dev/null || fail "create --from"
cmp -s pool serve/pools/q || lost "create --from: not the file"
ctl_fails 4 "next: replctl sync pool $T/q" create "$T/q" --from pool
