# SPDX-License-Identifier: BSD-3-Clause
# A file whose record can't be opened may be in use: restore does not replace it.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || exit 77
start_target
cd "$TMP" || exit 1
mkdir theirs
head -c 1048576 /dev/urandom >theirs/pool
ctl sync theirs/pool "$T/p" >/dev/null || fail "sync"
chmod 644 theirs/pool
chmod 600 theirs/pool.repl
chown "$SERVE_USER" theirs key known_hosts
exec 9<theirs/pool.repl
flock 9
cp -a theirs/pool.repl saved
status=0
setpriv --reuid="$SERVE_USER" --regid="$(id -g "$SERVE_USER")" --clear-groups "$REPLCTL" --identity key \
	--known-hosts known_hosts restore --force "$T/p" theirs/pool >out 2>err </dev/null || status=$?
[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
grep -q "theirs/pool.repl" err && grep -q "^next: " err || fail "$(cat err)"
cmp -s saved theirs/pool.repl || lost "the record is gone"

# Where one may not write it is no matter of the replica.
mkdir -m 755 ours
status=0
setpriv --reuid="$SERVE_USER" --regid="$(id -g "$SERVE_USER")" --clear-groups "$REPLCTL" --identity key \
	--known-hosts known_hosts restore "$T/p" ours/pool >out 2>err </dev/null || status=$?
[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
grep -q "ours/pool.*denied" err && grep -q "^next: repeat the command as the user" err || fail "$(cat err)"
