# SPDX-License-Identifier: BSD-3-Clause
# Why a target refuses is taken from the reason that it gives, whatever its words are; from its words where it is of a
# version that gives none; and a reason that is none is as if it were not there.
. "$(dirname "$0")/../integration/api_lib.sh"
. "$(dirname "$0")/liar.sh"
start_api
FILE=$TMP/p
configure "$(pool p)"
ok set reconnect-min 10
ok set reconnect-max 200
ok map "$FILE" $MIB
ok open 1
ok persist 0 0 $MIB

# stands REASON WORDS: for that reason, with these words of the target.
stands() {
	ctl why "$FILE" >"$TMP/status"
	grep -q "^reason  *$1:" "$TMP/status" && grep -qF "$2" "$TMP/status"
}

# told REASON WORDS LIE: what becomes of that lie about the answer to pool.open.
told() {
	lie "${3:+{\"method\": \"pool.open\", $3\}}"
	ctl resume "$FILE" "$(pool p)" >/dev/null || fail "resume"
	wait_for 10 stands "$1" "$2" || fail "not $1 with $3: $(cat "$TMP/status")"
}

# says WORDS MEMBER: a refusal in other words, with that member beside the status.
says() {
	printf '"set": ["error"], "value": {"code": -32007, "message": "%s", "data": {"status": "refused", "next": "n"%s}}' \
		"$1" "${2:+, $2}"
}

# A word of its administrator's against the evidence.
echo 'provider-class = ib' >>"$REPLD_CONF"
signalled KILL $(sessions)
wait_for 10 stands config "contradicts the evidence" || fail "$(cat "$TMP/status")"
sed -i '$d' "$REPLD_CONF"

ctl promote --force "$T/p" >/dev/null || fail "promote"
told promoted "takes no replication" ''
told refused "other words 1" "$(says "other words 1")"
told promoted "other words 2" '"set": ["error", "message"], "value": "other words 2"'
told behind "primary now 3" "$(says "it is the primary now 3" '"reason": "behind"')"
# Of the version before.
told promoted "takes no replication" '"set": ["error", "data"], "value": {"status": "refused"}'
told refused "words 4;" "$(says "words 4;" '"reason": "paused"')"
told promoted "primary now 5;" "$(says "it is the primary now 5;" "\"reason\": \"$(printf 'behind%.0s' {1..9999})\"")"
ok persist 0 0 4096
ok close
stop_api
