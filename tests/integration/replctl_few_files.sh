# SPDX-License-Identifier: BSD-3-Clause
# However few descriptors replctl or a session of the target may open, what is said is which limit to raise:
# neither that the host's key is in doubt nor that a pool directory is to be made.
. "$(dirname "$0")/lib.sh"
make_keys
# A session's limit is what the test has written last.
cat >"$TMP/limited" <<END
#!/bin/sh
ulimit -n "\$(cat $TMP/limit)"
exec "$REPLD" "\$@"
END
chmod 755 "$TMP/limited"
mkdir "$TMP/pools" && echo 1024 >"$TMP/limit"
printf '[repld]\npool-dir = %s\n' "$TMP/pools" >"$TMP/repld.conf"
start_sshd "Subsystem repl $TMP/limited session --config $TMP/repld.conf"
T=$USER_NAME@127.0.0.1:$SSHD_PORT
head -c 64K /dev/urandom >"$TMP/file"
ctl sync "$TMP/file" "$T/p" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"

# said ARG...: it is well, or ends with 1 and tells of the limit.
said() {
	[ $? -eq 0 ] && return
	[ "$(sed -n 's/^replctl: //p' "$TMP/err" | grep -c RLIMIT_NOFILE)" -eq 1 ] &&
		grep -q "^next: raise the limit\|^next: .*(goes on where this ended)" "$TMP/err" &&
		! grep -q "install -d\|fingerprint" "$TMP/err" || fail "$limit descriptors, $*: $(cat "$TMP/err")"
}

loads() {
	(ulimit -n "$1" && exec "$REPLCTL" --version) >/dev/null 2>&1
}

few() {
	(ulimit -n "$limit" && ctl "$@") >"$TMP/out" 2>"$TMP/err"
	said "$@"
}

for limit in 4 5 6 7; do
	loads "$limit" || continue
	few list "$T"
	few restore --force "$T/p" "$TMP/file"
done
# What libssh has open at that moment is not the same each time.
unread() {
	for limit in 5 6 7; do
		loads "$limit" || continue
		few list "$T"
		grep -q "can't be looked for" "$TMP/err" && return
	done
	return 1
}
sanitized || wait_for 2 unread || fail "known_hosts alone could be opened each time"
cmp "$TMP/file" "$TMP/pools/p" || lost "the file has changed"

for limit in 4 5 7 8; do
	echo "$limit" >"$TMP/limit"
	ctl create "$T/q" --size 64K >"$TMP/out" 2>"$TMP/err"
	said create "$T/q"
	rm -f "$TMP/pools"/q*
done
exit 0
