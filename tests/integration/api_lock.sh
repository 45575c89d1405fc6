# SPDX-License-Identifier: BSD-3-Clause
# What a program has locked by fcntl(2) stays locked, though the library looks at the pool's file; and that file's
# record is beside it, whatever it is called.
. "$(dirname "$0")/lib.sh"
start_target
cat >"$TMP/repl.conf" <<END
[repl]
target = $T/locked
identity = $TMP/key
known-hosts = $TMP/known_hosts
END
REPL_CONFIG=$TMP/repl.conf timeout -k 5 60 "$BUILD/tests/integration/api_lock" "$TMP/pool" >&2 ||
	fail "ended with $?"
ctl verify "$TMP/pool" "$T/locked" >/dev/null || lost "the replica differs"
ctl remove --force "$T/locked" >/dev/null || fail "remove"

for name in 'of
two lines' 'of\012one'; do
	mkdir "$TMP/$name"
	REPL_CONFIG=$TMP/repl.conf timeout -k 5 60 "$BUILD/tests/integration/api_lock" "$TMP/$name/pool" >&2 ||
		fail "'$name' ended with $?"
	[ -f "$TMP/$name/pool.repl" ] || fail "no record in '$name'"
	ctl remove --force "$T/locked" >/dev/null || fail "remove"
done
