# SPDX-License-Identifier: BSD-3-Clause
# Firewalls and NAT forget connections that are idle: TCP looks after each lane's, and after those of a replica that is back.
. "$(dirname "$0")/api_lib.sh"
command -v ss >/dev/null || { echo "skipped: no ss (package iproute2)"; exit 77; }
make_keys
start_serve
start_api
configure "$(pool p)"
ok set lanes 3
ok set reconnect-max 500
ok map "$TMP/p" $MIB
ok open 1
wait_for 10 lanes_kept 3 || fail "$(ss -tnop)"
hurt kill
ok put 0 4096 2
ok persist 0 0 4096
wait_for 20 established 0 || fail "it does not come back: $TEXT"
wait_for 10 lanes_kept 3 || fail "of the replica that is back: $(ss -tnop)"
ok close
stop_api
