# SPDX-License-Identifier: BSD-3-Clause
# A request that is out of place is refused as such, changes nothing, and the session goes on.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
{
	request ping
	request pool.open '{"name":"early","mode":"write"}'
	hello
	hello
	request lanes.open '{"count":1,"msg_size":4096,"depth":2,"providers":["tcp"]}'
	request pool.mark '{"state":"up-to-date"}'
	request pool.close
	request lanes.close
	request pool.create '{"name":"order","size":4096}'
	request pool.open '{"name":"order","mode":"read"}'
	request pool.mark '{"state":"outdated"}'
	request pool.open '{"name":"victim.pool","mode":"read"}'
	request pool.remove '{"name":"victim.pool"}'
	request pool.close
	request pool.remove '{"name":"victim.pool"}'
	request nothing
	request bye
} | raw_session >"$TMP/out" || fail "the session failed"
# What each of them was answered, in order.
python3 - "$TMP/out" <<'EOF' || fail "$(cat "$TMP/out")"
import json, sys
due = ["protocol", "protocol", None, "protocol", "protocol", "protocol", "protocol",
       "protocol", None, None, "protocol", "protocol", "protocol", None, "busy",
       "protocol", None]
got = [json.loads(line).get("error", {}).get("data", {}).get("status")
       for line in open(sys.argv[1])]
sys.exit(0 if got == due else "answers: %s" % got)
EOF
check_victim
