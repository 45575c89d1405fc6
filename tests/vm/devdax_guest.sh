# SPDX-License-Identifier: BSD-3-Clause
# In a guest of devdax.sh: the sidecar stays, its pool's device is another one.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../integration/lib.sh"
. "$here/guest_lib.sh"
printf '%s\n' '[repl]' "connect-timeout = 60000" "op-timeout = 30000" "heartbeat-timeout = 20000" >"$TMP/repl.conf"
export REPL_CONFIG=$TMP/repl.conf
pools=$TMP/serve/pools
mkdir -p "$pools"
nvdimms

# device: the namespace, with nothing on it.
device() {
	namespace 0 devdax
	chown "$SERVE_USER" "$DEVICE"
}

# listed STATE: what is told of the pool.
listed() {
	ctl list "$T" >"$TMP/list" || fail "list"
	grep -q "^pool .*$1" "$TMP/list" || fail "not $1: $(cat "$TMP/list")"
}

# settled: nothing is recorded as stored since all was flushed.
settled() {
	[ $(($(od -An -tu1 -j60 -N1 "$pools/pool.repl") & 64)) = 64 ]
}

device
first=$DEVICE
ln -s "$DEVICE" "$pools/pool"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
head -c 8M /dev/urandom >"$TMP/local"
ctl create "$T/pool" --size 8M >/dev/null || fail "create"
settled || fail "new, and not flushed"
ctl sync "$TMP/local" "$T/pool" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
! settled || fail "written, and called flushed"
# Who opens it next flushes it, once for all who write nothing.
hold pool write
settled || fail "opened, and not flushed"
# The link is its name: nobody has put it in the place of its file.
wait_for 20 grep -q '"id": *3' "$TMP/hold.out" || fail "no answer to a ping: $(cat "$TMP/hold.out")"
grep '"id": *3' "$TMP/hold.out" | grep -q '"result"' || fail "a ping: $(cat "$TMP/hold.out" "$TMP/serve.log")"
kill "$HOLD_PID"
wait_for 20 gone "$HOLD_PID" || fail "the holder stays"
wait_for 20 grep -q "was open for writing and is not known" "$TMP/serve.log" || fail "the session does not end"
settled || fail "nothing was written, and it is to be flushed again"
ctl sync "$TMP/local" "$T/pool" >"$TMP/out" 2>&1 || fail "sync again: $(cat "$TMP/out")"
listed up-to-date
ctl promote "$T/pool" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
! settled || fail "its own program's, and called flushed"
ctl demote "$T/pool" >"$TMP/out" 2>&1 || fail "demote: $(cat "$TMP/out")"

device
[ "$DEVICE" = "$first" ] || fail "it is $DEVICE, not $first"
listed inconsistent
! ctl restore "$T/pool" "$TMP/restored" >"$TMP/out" 2>&1 || fail "restored from a device that has nothing"
[ ! -e "$TMP/restored" ] || fail "there is a file"
ctl sync "$TMP/local" "$T/pool" >"$TMP/out" 2>&1 || fail "sync to the new device: $(cat "$TMP/out")"
grep -q "its device is another one" "$TMP/serve.log" || fail "no word of it"
listed up-to-date
ctl verify "$TMP/local" "$T/pool" >"$TMP/out" 2>&1 || lost "the replica differs: $(cat "$TMP/out")"
ctl restore "$T/pool" "$TMP/restored" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
cmp "$TMP/local" "$TMP/restored" || lost "what was restored differs"

# Links that are changed over, as where names of devices are: nothing comes into the other pool's device.
first=$DEVICE
namespace 1 devdax
chown "$SERVE_USER" "$DEVICE"
ln -s "$DEVICE" "$pools/other"
head -c 8M /dev/urandom >"$TMP/theirs"
ctl create "$T/other" --size 8M >/dev/null || fail "create the other"
ctl sync "$TMP/theirs" "$T/other" >"$TMP/out" 2>&1 || fail "sync to the other: $(cat "$TMP/out")"
ln -sfn "$DEVICE" "$pools/pool"
ln -sfn "$first" "$pools/other"
! ctl sync "$TMP/local" "$T/pool" >"$TMP/out" 2>&1 || fail "it is written to the other pool's device"
grep -q "holds pool 'other': correct the link" "$TMP/out" || fail "no word of it: $(cat "$TMP/out")"
! ctl sync "$TMP/theirs" "$T/other" >"$TMP/out" 2>&1 || fail "the other is written to this pool's device"
ln -sfn "$first" "$pools/pool"
ln -sfn "$DEVICE" "$pools/other"
for pair in "local pool" "theirs other"; do
	set -- $pair
	ctl verify "$TMP/$1" "$T/$2" >"$TMP/out" 2>&1 || lost "$2 differs: $(cat "$TMP/out")"
done

# As after a boot, when repld is up before its device is, or before udev has made it repld's: that passes by itself.
# away WORDS: the pool can't be opened, which is no refusal.
away() {
	code=0
	ctl verify "$TMP/local" "$T/pool" >"$TMP/out" 2>&1 || code=$?
	grep -q "$1" "$TMP/out" || fail "not '$1': $(cat "$TMP/out")"
	[ "$code" = 1 ] || fail "status $code: $(cat "$TMP/out")"
}

chown root "$first"
chmod 600 "$first"
away "see that the user of repld may"
region 0
ndctl disable-namespace "namespace$REGION.0" >/run/ndctl 2>&1 || fail "disable: $(cat /run/ndctl)"
wait_for 20 test ! -e "$first" || fail "it is still there"
away "the device that its link leads to is not there"
ndctl enable-namespace "namespace$REGION.0" >/run/ndctl 2>&1 || fail "enable: $(cat /run/ndctl)"
wait_for 20 test -e "$first" || fail "it does not come back"
chown "$SERVE_USER" "$first"
ctl verify "$TMP/local" "$T/pool" >"$TMP/out" 2>&1 || lost "it differs when it is back: $(cat "$TMP/out")"
stop "$SERVE_PID"
