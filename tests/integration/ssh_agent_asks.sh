# SPDX-License-Identifier: BSD-3-Clause
# An agent that tells its keys and does not sign, since it asks a person, an agent that ssh's config
# names, and a command of that config end no deadline: not of opening, of replctl, nor of closing.
. "$(dirname "$0")/lib.sh"
start_target

# fake_agent SOCKET MODE: keys: tells its key and then nothing; half: half an answer; none: nothing.
fake_agent() {
	python3 -c '
import base64, socket, struct, sys, threading
path, mode, key = sys.argv[1:]
blob = base64.b64decode(key)
answer = b"\x0c" + struct.pack(">I", 1) + struct.pack(">I", len(blob)) + blob + struct.pack(">I", 0)
answer = struct.pack(">I", len(answer)) + answer
def serve(c):
    try:
        if mode != "none" and c.recv(1):
            c.sendall(answer if mode == "keys" else answer[:6])
        while c.recv(65536):
            pass
    except OSError:
        pass
s = socket.socket(socket.AF_UNIX)
s.bind(path)
s.listen(64)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
' "$1" "$2" "$(cut -d " " -f 2 "$TMP/key.pub")" &
	PIDS="$PIDS $!"
	wait_for 20 test -S "$1" || fail "the agent does not start"
}

# in_time WHAT COMMAND...: it is a timeout, by its deadline.
in_time() {
	what=$1
	shift
	began=$(date +%s%N)
	expect_error timeout . timeout -k 1 20 "$@"
	took=$((($(date +%s%N) - began) / 1000000))
	[ "$took" -ge 600 ] && [ "$took" -le 3000 ] || fail "$what: took $took ms, not 700"
}

for mode in keys half none; do
	fake_agent "$TMP/agent_$mode" "$mode"
	SSH_AUTH_SOCK=$TMP/agent_$mode in_time "agent, $mode" \
		"$CHANNEL_CAT" -t 700 -k "$TMP/known_hosts" cat "$T"
	told=$(grep -c "ssh-agent at '$TMP/agent_$mode' does not answer" "$TMP/err")
	if [ "$mode" = none ]; then
		[ "$told" -eq 1 ] || fail "a silent agent is not named: $(cat "$TMP/err")"
	else
		[ "$told" -eq 0 ] || fail "an agent that answers: $(cat "$TMP/err")"
	fi
done

# replctl, of which the keys of the test are not asked for.
cat >"$TMP/repl.conf" <<END
[repl]
target = $T/p
known-hosts = $TMP/known_hosts
connect-timeout = 700
END
export REPL_CONFIG=$TMP/repl.conf
SSH_AUTH_SOCK=$TMP/agent_keys
export SSH_AUTH_SOCK
began=$(date +%s%N)
timeout -k 1 20 "$REPLCTL" list "$T" >"$TMP/out" 2>&1
[ $? -eq 9 ] || fail "replctl, no timeout: $(cat "$TMP/out")"
took=$((($(date +%s%N) - began) / 1000000))
[ "$took" -le 3000 ] || fail "replctl took $took ms, not 700"

# What ssh's config has: it is bound over ssh's own, as libssh has the home directory from the
# user database.
home=$(getent passwd "$USER_NAME" | cut -d : -f 6)
cp "$CHANNEL_CAT" "$TMP/channel_cat" && CHANNEL_CAT=$TMP/channel_cat
[ "$(id -u)" -eq 0 ] && [ -d "$home" ] &&
	unshare -m mount --bind "$HOME" "$home" 2>/dev/null || {
	left_out "ssh's config: no root's rights, or no mount namespace"
	exit
}
unset SSH_AUTH_SOCK
# with_config CONFIG OPTION...: channel_cat with that for ssh's.
with_config() {
	printf '%b' "$1" >"$HOME/.ssh/config"
	shift
	printf 'mount --bind "%s" "%s" && exec %s "$@"\n' "$HOME" "$home" "${first-}" >"$TMP/inside.sh"
	unshare -m sh "$TMP/inside.sh" "$CHANNEL_CAT" -k "$TMP/known_hosts" "$@" cat "$T"
}
cat >"$TMP/asks" <<END
#!/bin/sh
exec sleep 10 <&- >&- 2>&-
END
chmod 755 "$TMP/asks"
began() { date +%s%N; }
for config in "Host *\n IdentityAgent $TMP/agent_none\n" "Match exec \"$TMP/asks\"\n User x\n"; do
	began=$(date +%s%N)
	expect_error timeout . with_config "$config" -t 700
	took=$((($(date +%s%N) - began) / 1000000))
	[ "$took" -le 3000 ] || fail "'$config' took $took ms, not 700"
done

# A command of ssh's config finds its signals as one that a shell starts, and prints nothing in the program's name. What
# would match has no server.
away=" HostName 127.0.0.2\\n"
hello='{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1]}}'
for command in "timeout 1 sleep 60" "trap 'exit 1' USR1; kill -s USR1 \$\$" "echo noise >&2; false"; do
	echo "$hello" | (trap '' USR1 && with_config "Match exec \"$command\"\n$away" -t 20000 -i "$TMP/key") \
		>"$TMP/out" 2>"$TMP/err" || fail "'$command': $(cat "$TMP/err")"
	grep -q '"result"' "$TMP/out" || fail "'$command': no session: $(cat "$TMP/out")"
	[ ! -s "$TMP/err" ] || fail "'$command' says: $(cat "$TMP/err")"
done

# Nor is it an agent that is not asked: ssh's config names another one, or none.
echo "$hello" | SSH_AUTH_SOCK=$TMP/agent_none with_config "Host *\n IdentityAgent none\n IdentityFile $TMP/key\n" -t 10000 \
	>"$TMP/out" 2>"$TMP/err" || fail "IdentityAgent none: $(cat "$TMP/err")"
grep -q '"result"' "$TMP/out" || fail "IdentityAgent none: no session: $(cat "$TMP/out")"

# What a command has ended with is not told to a program that ignores SIGCHLD, which says so. It is nothing to whom ssh's
# config runs none for; replctl does not inherit it.
first="env --ignore-signal=CHLD"
expect_error config "'Match exec'.*SIGCHLD" with_config "Match exec true\n$away" -i "$TMP/key"
echo "$hello" | with_config "Match host other exec true\n$away" -t 20000 -i "$TMP/key" >"$TMP/out" 2>"$TMP/err" ||
	fail "no command is run: $(cat "$TMP/err")"
grep -q '"result"' "$TMP/out" || fail "no command is run: no session: $(cat "$TMP/out")"
printf '%b' "Match exec false\n$away" >"$HOME/.ssh/config"
unset REPL_CONFIG
unshare -m sh "$TMP/inside.sh" "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" list "$T" >"$TMP/out" 2>&1 ||
	fail "replctl: $(cat "$TMP/out")"
