# SPDX-License-Identifier: BSD-3-Clause
# A ProxyCommand of ssh's config carries a session, whose peer has then no address; one that says
# nothing is a timeout. By a ProxyJump the target is reached by way of that host and not past it, whatever libssh makes of one.
. "$(dirname "$0")/lib.sh"
make_keys
# Out of the home directory, which is bound over below.
cp "$CHANNEL_CAT" "$TMP/channel_cat" && CHANNEL_CAT=$TMP/channel_cat
start_serve_with "$SERVE_WITH"
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
home=$(getent passwd "$USER_NAME" | cut -d : -f 6)
# The config is bound over ssh's own: libssh takes the home directory from the user database.
[ "$(id -u)" -eq 0 ] && [ -d "$home" ] &&
	unshare -m mount --bind "$HOME" "$home" 2>/dev/null || exit 77
cat >"$TMP/proxy.py" <<'END'
import os, select, socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    ready = select.select([0, s], [], [])[0]
    if 0 in ready:
        data = os.read(0, 65536)
        if not data:
            break
        s.sendall(data)
    if s in ready:
        data = s.recv(65536)
        if not data:
            break
        os.write(1, data)
END
# with_config COMMAND|-J HOST ARGUMENT...
with_config() {
	if [ "$1" = -J ]; then
		printf 'Host *\n ProxyJump %s\n' "$2" >"$HOME/.ssh/config"
		shift
	else
		printf 'Host *\n ProxyCommand %s\n' "$1" >"$HOME/.ssh/config"
	fi
	shift
	printf 'mount --bind "%s" "%s" && exec "$@"\n' "$HOME" "$home" >"$TMP/inside.sh"
	unshare -m sh "$TMP/inside.sh" "$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/known_hosts" "$@"
}
proxy="python3 $TMP/proxy.py %h %p"
echo hello | with_config "$proxy" cat "$target" >"$TMP/out" || fail "no session"
grep -q '^hello$' "$TMP/out" || fail "answered $(cat "$TMP/out")"
[ "$(with_config "$proxy" peer "$target")" = "" ] || fail "a peer address behind a proxy"
with_config "$proxy" open "$target" 10 || fail "leak"
expect_error timeout "$SERVE_PORT" with_config "sleep 20" -t 500 cat "$target"
expect_error unreachable "$SERVE_PORT" with_config "false" cat "$target"

# The target has an address that only the jump host's ssh reaches.
mkdir "$TMP/bin"
cat >"$TMP/bin/ssh" <<END
#!/bin/sh
[ "\$1 \$2 \$3" = "-W [127.0.0.2]:$SERVE_PORT jump.example" ] || exit 1
exec python3 "$TMP/proxy.py" 127.0.0.1 $SERVE_PORT
END
chmod 755 "$TMP/bin/ssh"
sed 's/127\.0\.0\.1/127.0.0.2/' "$TMP/known_hosts" >>"$TMP/known_hosts.far"
cat "$TMP/known_hosts.far" >>"$TMP/known_hosts"
behind=$SERVE_USER@127.0.0.2:$SERVE_PORT
echo hello | PATH=$TMP/bin:$PATH with_config -J jump.example cat "$behind" >"$TMP/out" ||
	fail "no session by way of another host"
grep -q '^hello$' "$TMP/out" || fail "answered $(cat "$TMP/out")"
echo hello | with_config -J none cat "$target" >"$TMP/out" || fail "no session where there is none"
grep -q '^hello$' "$TMP/out" || fail "answered $(cat "$TMP/out")"

# Nor is a proxy waited for that outlives its session, be it that the program has SIGTERM blocked.
plain=$CHANNEL_CAT
cat >"$TMP/deaf" <<END
#!/bin/sh
exec timeout -k 1 10 env --block-signal=TERM "$plain" "\$@"
END
chmod 755 "$TMP/deaf"
CHANNEL_CAT=$TMP/deaf
expect_error timeout "$SERVE_PORT" with_config "sleep 30" -t 500 cat "$target"
cat >"$TMP/stays" <<END
trap "" TERM
test "\$3\$4" = "%$SERVE_USER" && python3 "$TMP/proxy.py" "\$1" "\$2"
exec sleep 30
END
echo hello | with_config "sh $TMP/stays %h %p %% %r" cat "$target" >"$TMP/out" ||
	fail "no session by a proxy that stays"
grep -q '^hello$' "$TMP/out" || fail "answered $(cat "$TMP/out")"
