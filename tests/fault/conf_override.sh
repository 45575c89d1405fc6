# SPDX-License-Identifier: BSD-3-Clause
# What repld.conf states against evidence is refused, changes no pool, and with trust-me is shown wherever it counts.
. "$(dirname "$0")/fault.sh"

# restart LINE...: the target anew, with these lines.
restart() {
	[ -z "${SERVE_PID-}" ] || stop "$SERVE_PID"
	start_target "$@"
	T=$target
}

facts() {
	ctl info "$T/p" --json | python3 -c 'import json, sys
o = json.load(sys.stdin)
print([o[name] for name in ("size", "uuid", "state", "generation")])'
	md5sum <"$TMP/serve/pools/p"
}

restart
ctl create "$T/p" --size 64K >/dev/null || fail "create"
facts >"$TMP/before"

# The provider is tcp, which is software, whatever the admin says.
restart "provider-class = ib"
refused="key 'provider-class': ib contradicts the evidence, 'tcp'.*'provider-class = ib trust-me'"
ctl_fails 4 "$refused" probe "$T"
grep -q "^next: correct repld.conf on the target" "$TMP/err" || fail "next: $(cat "$TMP/err")"
dd if=/dev/urandom of="$TMP/file" bs=64K count=1 2>/dev/null
ctl_fails 4 "$refused" sync "$TMP/file" "$T/p" --force
# A session that needs no facts.
facts | diff - "$TMP/before" >&2 || lost "the pool has changed"
not_open() {
	[ "$(ctl info --json "$T/p" | member writer_open)" = False ]
}
wait_for 10 not_open || fail "the pool stays open"

# Nothing is held: the same pool opens once the word is trusted.
restart "provider-class = ib trust-me" "ddio = off" "persistence-domain = mhp"
ctl probe "$T/p" >"$TMP/out" || fail "trust-me: $(cat "$TMP/out")"
against="repld.conf: provider-class, against libfabric: tcp stores by the CPU (tcp), trust-me"
grep -F "$against" "$TMP/out" | grep -q "^provider-class  *ib " || fail "probe: $(cat "$TMP/out")"
grep -q "^ddio  *off  *repld.conf: ddio$" "$TMP/out" || fail "ddio: $(cat "$TMP/out")"
grep -q "^persistence-domain  *mhp  *repld.conf: persistence-domain$" "$TMP/out" || fail "domain"
[ "$(ctl probe "$T" --json | member provider-class.source)" = "$against" ] || fail "--json"
ctl status "$T" >"$TMP/out" || fail "status"
grep -q "^  provider-class = ib trust-me$" "$TMP/out" || fail "status: $(cat "$TMP/out")"
grep -q "^  ddio = off$" "$TMP/out" || fail "status: $(cat "$TMP/out")"
hold p write
session_seen() {
	ctl status "$T" >"$TMP/out" && grep -F "p: provider-class = ib ($against)" "$TMP/out"
}
wait_for 20 session_seen || fail "status of the session: $(cat "$TMP/out")"
stop "$HOLD_PID"

# In the page cache no receive buffer outlives a power cut.
if [ "$(stat -f -c %T "$TMP/serve/pools")" != tmpfs ]; then
	restart "rqwrb = pm"
	ctl_fails 4 "key 'rqwrb': pm contradicts the evidence, 'dram'" probe "$T/p"
	restart "rqwrb = pm trust-me"
	ctl probe "$T/p" | grep -q "^rqwrb  *pm  *repld.conf: rqwrb, against .*trust-me" || fail "rqwrb"
fi
restart "rqwrb = dram"
ctl probe "$T/p" | grep -q "^rqwrb  *dram  *repld.conf: rqwrb$" || fail "rqwrb = dram"

# A word with a slip in it starts nothing.
printf '[repld]\npool-dir = %s\nddio = off trust\n' "$TMP/serve/pools" >"$TMP/bad.conf"
"$REPLD" session --config "$TMP/bad.conf" </dev/null >"$TMP/out" 2>&1 && fail "'off trust' is taken"
grep -q "key 'ddio': 'off trust' is none of probe, on, off" "$TMP/out" || fail "$(cat "$TMP/out")"
no_signal_deaths
