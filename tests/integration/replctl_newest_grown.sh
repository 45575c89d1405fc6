# SPDX-License-Identifier: BSD-3-Clause
# A program is lost while its pool grows, when one replica has grown and the other has not: of the two, which have all, the
# larger one is told, and whoever goes on from it gets the other one back by itself.
. "$(dirname "$0")/api_lib.sh"

# In repld's place: q is asked to grow and never does.
printf '[repld]\npool-dir = %s/serve/pools\n' "$TMP" >"$TMP/session.conf"
cat >"$TMP/late.py" <<'PYTHON'
import json, sys, time
pool = None
for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params") or {}
    if request["method"] == "pool.open":
        pool = params["name"]
    if pool == "q" and request["method"] == "pool.grow" and not params.get("prepare") and sys.argv[1:]:
        open(sys.argv[1] + "/reached", "w").close()
        sys.stdin.read()
        break
    print(line, end="", flush=True)
PYTHON
printf '#!/bin/sh\nset --\n[ ! -d "%s" ] || set -- "%s"\npython3 "%s" "$@" | "%s" session --config "%s" | cat\n' \
	"$TMP/late" "$TMP/late" "$TMP/late.py" "$REPLD" "$TMP/session.conf" >"$TMP/session"
chmod 755 "$TMP/session"

begin() {
	start_api
	configure "$(pool p)" "$(pool q)"
	ok set lanes 1
	ok set reconnect-min 200
	ok set reconnect-max 500
}

make_keys
start_serve_with "$TMP/session"
mkdir -m 777 "$TMP/late"
begin
ok map "$TMP/local" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
cp "$TMP/local" "$TMP/acknowledged"
ok extend $((8 * MIB))
printf 'grow %d\n' $((8 * MIB)) >&"$API_IN"
wait_for 20 test -e "$TMP/late/reached" || fail "q is not asked to grow"
kill -KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
rm -r "$TMP/late"
[ "$(stat -c %s "$TMP/serve/pools/p")" = $((8 * MIB)) ] || fail "p has not grown"

# The machine is gone with its file.
for names in "p q" "q p"; do
	# shellcheck disable=SC2086
	ctl newest $(for name in $names; do pool "$name"; done) >"$TMP/out" || fail "newest: $(cat "$TMP/out")"
	grep -q "^newest *$(pool p)$" "$TMP/out" || fail "of $names: $(cat "$TMP/out")"
done
rm "$TMP/local" "$TMP/local.repl"
ctl restore "$(pool p)" "$TMP/local" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
cmp -n $((4 * MIB)) "$TMP/local" "$TMP/acknowledged" || lost "something is lost"
begin
ok map "$TMP/local" $((8 * MIB))
ok open
for i in 0 1; do
	wait_for 20 established $i || fail "not there: $TEXT"
	ok compare $i
	same
done
ok close
equal "$TMP/serve/pools/p" "$TMP/serve/pools/q"
stop_api
