# SPDX-License-Identifier: BSD-3-Clause
# A comparison that is cut off at an opening goes on where it was, as one beside the program does.
. "$(dirname "$0")/../integration/api_lib.sh"
export ASKED=$TMP/asked
: >"$ASKED"
chmod 666 "$ASKED"
. "$(dirname "$0")/liar.sh"
SIZE=$((96 * MIB))
start_api
configure "$T/p"
ok set connect-timeout 5000
ok set op-timeout 5000
ok set on-loss degrade
ok map "$TMP/file" $SIZE
ok put 0 $SIZE 1
ok open 1
ok close
# It misses something.
lie '{"method": "hello", "do": "close"}'
ok open
ok put $((SIZE - 4096)) 4096 2
ok persist 0 $((SIZE - 4096)) 4096
ok close

# begins: where the sessions since then have begun to compare, one a line.
begins() {
	python3 - "$ASKED" <<'END'
import json, sys

first = []
for line in open(sys.argv[1]):
    asked = json.loads(line)
    if asked["method"] == "hello":
        first.append(None)
    if asked["method"] == "pool.hash" and first[-1] is None:
        params = asked["params"]
        first[-1] = params["ranges"][0][0] if "ranges" in params else params["off"]
print(*[off for off in first if off is not None], sep="\n")
END
}

# In pieces of 16 MiB.
: >"$ASKED"
lie '{"method": "pool.hash", "nth": 3, "do": "stall"}'
ok open
lie ''
wait_for 60 established 0 || fail "it does not come back: $TEXT"
begins >"$TMP/begins"
[ "$(head -n 1 "$TMP/begins")" = 0 ] || fail "nothing was compared at opening: $(cat "$TMP/begins")"
[ "$(wc -l <"$TMP/begins")" -ge 2 ] || fail "nothing was cut off: $(cat "$TMP/begins")"
! tail -n +2 "$TMP/begins" | grep -qx 0 || fail "compared from the beginning again: $(cat "$TMP/begins")"
ok compare 0
same
ok close
stop_api
