# SPDX-License-Identifier: BSD-3-Clause
# repld serve that root starts can't be led elsewhere by its user, by links at or on the way to its log and its host key.
# In directories of root's both are made as ever, and in those of the user's.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || { echo "skipped: only root has other rights than the user"; exit 77; }
make_keys
make_serve_dir
USERS=$TMP/serve
ROOTS=$TMP/roots
mkdir "$ROOTS" "$TMP/secret" && chmod 755 "$ROOTS" && chmod 700 "$TMP/secret" || fail "mkdir"

# configured LOG KEY
configured() {
	cat >"$TMP/repld.conf" <<-END
		[repld]
		pool-dir = $USERS/pools
		listen = 127.0.0.1:0
		authorized-keys = $USERS/authorized_keys
		user = $SERVE_USER
		log = file:$1
		host-key = $2
	END
}

# refuses LOG KEY PATTERN
refuses() {
	configured "$1" "$2"
	timeout 20 "$REPLD" serve --config "$TMP/repld.conf" >"$TMP/err" 2>&1
	status=$?
	[ "$status" -eq 10 ] || fail "log $1, key $2: status $status: $(cat "$TMP/err")"
	grep -Eq "$3" "$TMP/err" || fail "log $1, key $2: $(cat "$TMP/err")"
}

# serves LOG KEY
serves() {
	configured "$1" "$2"
	"$REPLD" serve --config "$TMP/repld.conf" 2>>"$TMP/serve.log" &
	SERVE_PID=$!
	PIDS="$PIDS $SERVE_PID"
	wait_for 20 grep -q "repld.$SERVE_PID. info: listening on" "$1" || fail "log $1, key $2: it does not start"
	port=$(sed -n 's/.*listening on .*:\([0-9][0-9]*\)$/\1/p' "$1" | tail -n 1)
	ssh-keygen -y -f "$2" >"$TMP/host_key.pub" || fail "no host key $2"
	trust "$port" "$TMP/host_key.pub"
	ctl list "$SERVE_USER@127.0.0.1:$port" >"$TMP/out" 2>&1 || fail "list: $(cat "$TMP/out")"
	stop "$SERVE_PID"
	grep -q "session .*: session ends" "$1" || fail "a session has no log: $(cat "$1")"
	[ "$(stat -c '%U %a' "$1")" = "$SERVE_USER 600" ] || fail "log $1: $(stat -c '%U %a' "$1")"
	[ "$(stat -c %a "$2")" = 600 ] || fail "key $2: $(stat -c %a "$2")"
}

serves "$ROOTS/log" "$ROOTS/key"
serves "$ROOTS/log" "$ROOTS/key"
serves "$USERS/log" "$USERS/key"
# A log that somebody has made for it, a key that root had made in a directory of the user's.
: >"$ROOTS/empty.log"
chmod 600 "$ROOTS/empty.log"
ssh-keygen -q -t ed25519 -N '' -f "$USERS/given"
serves "$ROOTS/empty.log" "$USERS/given"

# One that is removed as it serves is not the user's to make anew: sessions are served all the same, and say so.
configured "$ROOTS/log" "$ROOTS/key"
"$REPLD" serve --config "$TMP/repld.conf" 2>"$TMP/removed.err" &
SERVE_PID=$!
PIDS="$PIDS $SERVE_PID"
wait_for 20 grep -q "repld.$SERVE_PID. info: listening on" "$ROOTS/log" || fail "it does not start"
port=$(sed -n 's/.*listening on .*:\([0-9][0-9]*\)$/\1/p' "$ROOTS/log" | tail -n 1)
ssh-keygen -y -f "$ROOTS/key" >"$TMP/host_key.pub" || fail "no host key"
trust "$port" "$TMP/host_key.pub"
rm "$ROOTS/log"
ctl list "$SERVE_USER@127.0.0.1:$port" >"$TMP/out" 2>&1 || fail "list without a log: $(cat "$TMP/out")"
wait_for 20 grep -q "key 'log': .*messages go to standard error" "$TMP/removed.err" || fail "$(cat "$TMP/removed.err")"
stop "$SERVE_PID"
[ ! -e "$ROOTS/log" ] || fail "who has made it?"

# Keys that are the reason why nobody can log in are told of before anybody tries.
tells() {
	configured "$ROOTS/keys.log" "$ROOTS/key"
	"$REPLD" serve --config "$TMP/repld.conf" 2>>"$TMP/serve.log" &
	SERVE_PID=$!
	PIDS="$PIDS $SERVE_PID"
	wait_for 20 grep -q "repld.$SERVE_PID. error: no one can log in: .*$1" "$ROOTS/keys.log" ||
		fail "not told: $(cat "$ROOTS/keys.log")"
	stop "$SERVE_PID"
}
mv "$USERS/authorized_keys" "$TMP/keys"
tells "No such file"
install -m 600 -o root -g root "$TMP/keys" "$USERS/authorized_keys"
tells "Permission denied"
rm "$USERS/authorized_keys"
mv "$TMP/keys" "$USERS/authorized_keys"

# In a directory of root's without space for it.
if unshare -m true 2>/dev/null; then
	mkdir "$ROOTS/full"
	configured "$ROOTS/full/log" "$ROOTS/key"
	timeout 20 unshare -m sh -c 'mount -t tmpfs -o nr_inodes=1,mode=755 none "$1" && exec "$2" serve --config "$3"' \
		sh "$ROOTS/full" "$REPLD" "$TMP/repld.conf" >"$TMP/err" 2>&1
	status=$?
	[ "$status" -eq 1 ] || fail "without space for its log: status $status: $(cat "$TMP/err")"
	grep -q "key 'log': making '$ROOTS/full/log' (make room there, .*No space left on device" "$TMP/err" ||
		fail "without space for its log: $(cat "$TMP/err")"
else
	left_out "no mount namespace"
fi

# The user's links, to what is root's and to where root may make files.
ssh-keygen -q -t ed25519 -N '' -f "$TMP/secret/key"
echo canary >"$TMP/secret/canary"
chmod 600 "$TMP/secret/canary"
unchanged() {
	[ "$(cat "$TMP/secret/canary")" = canary ] || fail "root has written to where a link led: $(cat "$TMP/secret/canary")"
	[ "$(stat -c '%U %a' "$TMP/secret/canary")" = "root 600" ] || fail "$(stat -c '%U %a' "$TMP/secret/canary")"
	[ "$(ls "$TMP/secret")" = "$(printf 'canary\nkey\nkey.pub')" ] || fail "root has made: $(ls "$TMP/secret")"
}
ln -s "$TMP/secret/canary" "$USERS/linked.log"
ln "$TMP/secret/canary" "$USERS/hard.log"
ln -s "$TMP/secret/new" "$USERS/new.log"
ln -s "$TMP/secret" "$USERS/way"
ln -s "$ROOTS" "$USERS/public"
ln -s "$TMP/secret/key" "$USERS/linked.key"
chown -h "$SERVE_USER" "$USERS"/*
chown root "$USERS/hard.log"
for log in linked.log hard.log new.log way/canary way/new public/new; do
	refuses "$USERS/$log" "$USERS/key" "key 'log': '$USERS/$log': Permission denied"
	unchanged
done
[ ! -e "$ROOTS/new" ] || fail "root has made a log where a link led"
for key in linked.key way/key way/new public/new; do
	refuses "$USERS/log" "$USERS/$key" "host key '$USERS/$key' is, or lies behind, a symbolic link"
	unchanged
done
[ ! -e "$ROOTS/new" ] || fail "root has made a key where a link led"

# A key of somebody else's.
cp "$TMP/secret/key" "$USERS/theirs"
chown daemon "$USERS/theirs"
refuses "$USERS/log" "$USERS/theirs" "belongs to uid $(id -u daemon)"
