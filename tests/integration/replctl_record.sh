# SPDX-License-Identifier: BSD-3-Clause
# The record beside a file: found from a link to the file, and missed where it can't be written. Where none can be made
# nothing is copied.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "sync"

# By a link, from another directory, it is the same file.
mkdir links
ln -s ../pool links/link
"$REPLCTL" --json why ./links/link >out || fail "why"
grep -q "closed it in order" out || fail "why of a link: $(cat out)"
[ "$(member reason <out)" = none ] || fail "why of a link: $(cat out)"

# What is to be typed next is of the file, beside which the record is, and not of the link.
ctl_fails 4 "links/link is a link" restore --force "$T/p" links/link
grep -q "^next: replctl restore --force $T/p $(pwd -P)/pool$" err || fail "$(cat err)"
mv pool.repl kept
ctl_fails 4 "there is no $(pwd -P)/pool.repl" resolve --discard local links/link "$T/p"
grep -q "^next: replctl verify $(pwd -P)/pool $T/p" err || fail "$(cat err)"
cp -p pool whole
head -c "$(stat -c %s kept)" /dev/zero | tr '\0' x >pool.repl
"$REPLCTL" why ./links/link >out || fail "why"
grep -q "^next *rm $(pwd -P)/pool.repl, then" out || fail "a damaged record: $(cat out)"
cp kept pool.repl
truncate -s 4096 pool
"$REPLCTL" why ./links/link >out || fail "why"
grep -q "^next .*rm $(pwd -P)/pool.repl;.* $(pwd -P)/pool$" out || fail "a file that was cut: $(cat out)"
cp whole pool

# What is to be typed next has each blank of its name.
cp pool "two  blanks"
"$REPLCTL" why "./two  blanks" >out || fail "why"
grep -q "^next .*'\./two  blanks'" out || fail "a blank is lost: $(cat out)"

# A file that is whole, and whose record found no room: both is told, and what helps.
[ "$(id -u)" -eq 0 ] || { left_out "a full disk needs root"; exit; }
cat >small <<'END'
mkdir -p disk && mount -t tmpfs -o size=8M,nr_inodes=2 tmpfs disk || exit 77
"$REPLCTL" --identity key --known-hosts known_hosts restore "$T/p" disk/pool
status=$?
cmp pool disk/pool || status=99
exit "$status"
END
export REPLCTL T
unshare -m sh small >out 2>err
status=$?
[ "$status" -ne 77 ] || { left_out "no mount namespace"; exit; }
[ "$status" -eq 1 ] || fail "exit $status: $(cat out err)"
grep -q "disk/pool is restored.*disk/pool.repl" err || fail "$(cat err)"
grep -q "next: .*replctl .* restore --force $T/p disk/pool" err || fail "$(cat err)"

# Where it can't be made, that is told before a pool is.
cat >readonly <<'END'
mkdir -p ro && mount -t tmpfs -o size=8M tmpfs ro && cp pool ro && mount -o remount,ro ro || exit 77
# shellcheck disable=SC2086
exec "$REPLCTL" --identity key --known-hosts known_hosts sync $dry ro/pool "$T/none"
END
export dry
for dry in --dry-run ""; do
	unshare -m sh readonly >out 2>err
	status=$?
	[ "$status" -ne 77 ] || { left_out "no mount namespace"; break; }
	[ "$status" -eq 1 ] || fail "exit $status: $(cat out err)"
	grep -q "ro/pool.repl.*: Read-only file system" err || fail "$(cat err)"
	grep -q "^next: mount that file system so that it can be written, " err || fail "$(cat err)"
	ctl_fails 3 "not found" info "$T/none"
done
mkdir theirs
cp pool key theirs
chown nobody theirs/key
for dry in --dry-run ""; do
	# shellcheck disable=SC2086
	setpriv --reuid=nobody --clear-groups "$REPLCTL" --identity theirs/key --known-hosts known_hosts \
		sync $dry theirs/pool "$T/none" >out 2>err
	status=$?
	[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
	grep -q "theirs/pool.repl.*: Permission denied" err || fail "$(cat err)"
	grep -q "^next: repeat the command as the user whose file it is" err || fail "$(cat err)"
	ctl_fails 3 "not found" info "$T/none"
done
