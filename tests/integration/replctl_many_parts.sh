# SPDX-License-Identifier: BSD-3-Clause
# A pool set with more parts than an answer has room for is told of like any other: the first of them, and how many more
# there are.
. "$(dirname "$0")/lib.sh"
start_target
P=$TMP/serve/pools
d=$(printf '%0200d/%040d' 1 2)
mkdir -p "$P/$d" "$P/r"
[ "$(id -u)" != 0 ] || chown -R --reference="$P" "$P/${d%/*}" "$P/r"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n8M %s\nREPLICA\n8M r\n' "$d" >"$P/s"
ctl create "$T/s" --size 4M >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
ctl info --json "$T/s" >"$TMP/few" || fail "info"
! grep -q parts_left "$TMP/few" || fail "more than all: $(cat "$TMP/few")"

# As a growth leaves them that was not recorded.
(cd "$P/$d" && seq -f %06.0f.pmem 1 1000 | xargs truncate -s 2M) || fail "no files"
ctl info --json "$T/s" >"$TMP/many" 2>"$TMP/err" || fail "info: $(cat "$TMP/err")"
python3 - "$TMP/many" <<-'E' || fail "$(cat "$TMP/many")"
	import json, sys
	info = json.load(open(sys.argv[1]))
	names = [p["name"][-11:] for p in info["parts"]]
	assert len(names) > 500 and len(names) + info["parts_left"] == 1002
	assert names == ["%06d.pmem" % i for i in range(len(names))]
E
ctl info "$T/s" >"$TMP/out" || fail "info"
grep -q "^ *and $(member parts_left <"$TMP/many") more$" "$TMP/out" || fail "not said: $(tail -n 3 "$TMP/out")"
