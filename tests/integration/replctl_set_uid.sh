# SPDX-License-Identifier: BSD-3-Clause
# A program with other rights than its caller's, here replctl, obeys nothing that is the caller's: no command of ssh's
# config and no shell, no agent, no library that is named in the environment.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m sh "$0"
fi
. "$(dirname "$0")/lib.sh"
sanitized && { echo "skipped: the sanitizers' runtime is for no such program"; exit 77; }
MARKS=$BUILD/tests/integration/leaves_mark.so
[ -e "$MARKS" ] || fail "no $MARKS"

# Who calls, with a home of his own: libssh takes it from the user database.
cp /etc/passwd "$TMP/passwd"
echo "replcaller:x:64321:64321::$HOME:/bin/sh" >>"$TMP/passwd"
mount --bind "$TMP/passwd" /etc/passwd || exit 77
mkdir "$TMP/marks" "$TMP/providers"
cp "$MARKS" "$TMP/providers/libmarks-fi.so"
cp "$REPLCTL" "$TMP/replctl"
printf '#!/bin/sh\n: >%s/shell\nexec /bin/sh "$@"\n' "$TMP/marks" >"$TMP/shell"
chmod 755 "$TMP/shell" "$TMP/replctl" "$TMP/providers" "$TMP/home"
chmod 777 "$TMP/marks"
start_target
mkdir "$TMP/own"
head -c 65536 /dev/zero >"$TMP/own/file"
chown -R 64321 "$HOME" "$TMP/key" "$TMP/own"
REPLCTL=$TMP/replctl
SHELL=$TMP/shell
export SHELL

by_caller() {
	setpriv --reuid=64321 --regid=64321 --clear-groups "$@" </dev/null
}
# called ARG...: replctl, with the caller's key.
called() {
	by_caller "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" "$@"
}
marked() {
	[ -e "$TMP/marks/$1" ] || return 1
	rm "$TMP/marks/$1"
}

# obeys: what the program does of all that; prints it.
obeys() {
	printf 'Match exec ": >%s/match"\n ProxyCommand : >%s/proxy\n' "$TMP/marks" "$TMP/marks" >"$HOME/.ssh/config"
	called list "$T" >"$TMP/out" 2>&1 || :
	: >"$HOME/.ssh/config"
	for mark in match proxy shell; do
		marked $mark && printf '%s ' $mark
	done
	by_caller env SSH_AUTH_SOCK="$TMP/agent" "$REPLCTL" --known-hosts "$TMP/known_hosts" list "$T" >"$TMP/out" 2>&1 &&
		printf 'agent '
	MARK="$TMP/marks/library" FI_PROVIDER_PATH="$TMP/providers" called sync --force "$TMP/own/file" "$T/p" >"$TMP/out" 2>&1 || :
	marked library && printf 'library '
	grep -q "FI_PROVIDER_PATH is set for a program" "$TMP/out" && printf 'told '
}

by_caller ssh-agent -D -a "$TMP/marks/agent" >"$TMP/agent.log" 2>&1 &
PIDS="$PIDS $!"
ln -s marks/agent "$TMP/agent"
wait_for 20 [ -S "$TMP/marks/agent" ] || fail "no agent: $(cat "$TMP/agent.log")"
by_caller env SSH_AUTH_SOCK="$TMP/agent" ssh-add -q "$TMP/key" || fail "ssh-add"

got=$(obeys)
[ "$got" = "match proxy shell agent library " ] || fail "with no other rights: $got, $(cat "$TMP/out")"
chmod 4755 "$REPLCTL"
got=$(obeys)
[ "$got" = "told " ] || fail "with root's rights: $got, $(cat "$TMP/out")"
called list "$T" >"$TMP/out" 2>&1 || fail "list: $(cat "$TMP/out")"
called sync "$TMP/own/file" "$T/q" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
