# SPDX-License-Identifier: BSD-3-Clause
# Pools whose data lie far apart go to a target and come back over a link that takes its time: each part has to be
# registered there, a round trip each. While they wait sync, restore and verify let the target hear from them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far "heartbeat = 500" "heartbeat-timeout = 2500"
T=$FAR_TARGET

# heard: the target has ended no session.
heard() {
	! grep "has been silent" "$TMP/serve.log" || fail "$1: the target heard nothing"
}

# scatter FILE SEED: 30 pieces of data in 30 GiB, more than goes there at once.
scatter() {
	python3 - "$1" "$2" <<'PY'
import random, sys
random.seed(int(sys.argv[2]))
f = open(sys.argv[1], "wb")
f.truncate(30 << 30)
for i in range(30):
    f.seek((i << 30) + (random.randrange(1000) << 12))
    f.write(random.randbytes(700000))
PY
}

scatter "$TMP/pool" 1
link both delay 50
ctl create "$T/p" --from "$TMP/pool" --sparse >/dev/null 2>"$TMP/err" || fail "create: $(cat "$TMP/err")"
heard "a first copy"
ctl restore "$T/p" "$TMP/back" >/dev/null 2>"$TMP/err" || fail "restore: $(cat "$TMP/err")"
heard "restore"

# What differs is read a block at a time.
head -c 1500000 /dev/urandom | dd of="$TMP/pool" bs=1M seek=1500 conv=notrunc 2>/dev/null
ctl_fails 1 "differ in 1 range, " verify "$TMP/pool" "$T/p"
heard "verify"
ctl sync "$TMP/pool" "$T/p" >/dev/null 2>"$TMP/err" || fail "sync: $(cat "$TMP/err")"
heard "sync"
ctl verify "$TMP/pool" "$T/p" >/dev/null 2>"$TMP/err" || lost "verify: $(cat "$TMP/err")"
