# SPDX-License-Identifier: BSD-3-Clause
# By each comparison the target is told a key of its own, the same in all requests of it. One of an earlier version, which
# does not say that it takes one, is told none, and what differs is found and copied all the same.
. "$(dirname "$0")/../integration/api_lib.sh"
export ASKED=$TMP/asked
: >"$ASKED"
chmod 666 "$ASKED"
. "$(dirname "$0")/liar.sh"
head -c 40M /dev/urandom >"$TMP/file"
ctl sync "$TMP/file" "$T/p" >/dev/null || fail "no replica"

# keys: of each session since then that has compared, how many it has told, and the first; - is none.
keys() {
	python3 - "$ASKED" <<'END'
import json, sys

sessions = []
for line in open(sys.argv[1]):
    asked = json.loads(line)
    if asked["method"] == "hello":
        sessions.append([])
    if asked["method"] == "pool.hash":
        sessions[-1].append(asked["params"].get("key", "-"))
for told in filter(None, sessions):
    print(len(set(told)), told[0], len(told))
END
}

# compares: what differs is found, by each of two, and copied.
compares() {
	: >"$ASKED"
	change "$TMP/file" 30000000
	for _ in 1 2; do
		ctl verify "$TMP/file" "$T/p" >"$TMP/out" 2>"$TMP/err" && lost "called equal: $(cat "$TMP/out")"
		grep -q "differ in 1 range, " "$TMP/err" || fail "verify: $(cat "$TMP/err")"
	done
	keys >"$TMP/keys"
	ctl sync "$TMP/file" "$T/p" >/dev/null 2>"$TMP/err" || fail "sync: $(cat "$TMP/err")"
	cmp -s "$TMP/file" "$TMP/serve/pools/p" || lost "sync leaves out what differs"
	ctl verify "$TMP/file" "$T/p" >/dev/null 2>"$TMP/err" || lost "equal, and verify: $(cat "$TMP/err")"
}

compares
[ "$(grep -Ec '^1 [0-9a-f]{32} ([2-9]|[1-9][0-9]+)$' "$TMP/keys")" -eq 2 ] || fail "keys: $(cat "$TMP/keys")"
[ "$(cut -d ' ' -f 2 "$TMP/keys" | sort -u | wc -l)" -eq 2 ] || fail "one key for both: $(cat "$TMP/keys")"

lie '{"method": "pool.open", "set": ["result", "hash_key"], "value": null}'
compares
[ "$(grep -Ec '^1 - ' "$TMP/keys")" -eq 2 ] || fail "a key for who takes none: $(cat "$TMP/keys")"
