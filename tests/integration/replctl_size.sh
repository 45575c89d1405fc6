# SPDX-License-Identifier: BSD-3-Clause
# A replica that grows while sync opens it anew is refused as one that had another size: more than the file is neither
# read nor sent. Nor does the answer to pool.mark change the size.
. "$(dirname "$0")/lib.sh"
# Lines of the session's answers: the second opening tells of a copy that was cut off, the third of a larger pool; or
# pool.mark of one of the size that it is started with.
cat >"$TMP/liar.py" <<'END'
import re, sys
opened = 0
marked = open(sys.argv[1]).read()
for line in sys.stdin:
    if marked:
        if '"state"' in line and '"epoch"' not in line:
            line = re.sub('"size": *[0-9]+', '"size":' + marked, line)
    elif '"epoch"' in line:
        opened += 1
        line = re.sub('"state": *"up-to-date"', '"state":"inconsistent"', line)
        if opened == 2:
            line = re.sub('"size": *[0-9]+', '"size":68719476736', line)
    line = re.sub('"imm_unit": *[0-9]+', '"imm_unit":0', line)
    sys.stdout.write(line)
    sys.stdout.flush()
END
printf '#!/bin/sh\nif [ -e "%s" ]; then\n\t"%s" session --config "%s" | python3 -u "%s" "%s"\nelse\n\texec "%s" session --config "%s"\nfi\n' \
	"$TMP/lie" "$REPLD" "$TMP/session.conf" "$TMP/liar.py" "$TMP/lie" "$REPLD" "$TMP/session.conf" >"$TMP/liar"
chmod 755 "$TMP/liar"
printf '[repld]\npool-dir = %s/serve/pools\n' "$TMP" >"$TMP/session.conf"
make_keys
start_serve_with "$TMP/liar"
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
cd "$TMP" || exit 1

# Equal contents, of which the generations say nothing.
head -c 1048576 /dev/urandom >pool
cp pool other
ctl sync pool "$T/p" >/dev/null 2>err || fail "sync: $(cat err)"
ctl sync other "$T/q" >/dev/null 2>err || fail "sync: $(cat err)"
: >lie
chmod 644 lie
ctl_fails 4 "1048576 bytes, the replica .* has 68719476736" sync other "$T/p"

# A pool of its own, whose first mark is inconsistent.
for size in 68719476736 4096; do
	rm -f lie
	ctl create "$T/new" --size 1M >/dev/null 2>err || fail "create: $(cat err)"
	printf %d "$size" >lie
	chmod 644 lie
	ctl_fails 1 "pool.mark: the pool has $size bytes, not 1048576" sync other "$T/new"
	rm -f lie
	ctl remove --force "$T/new" >/dev/null 2>err || fail "remove: $(cat err)"
done
