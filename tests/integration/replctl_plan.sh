# SPDX-License-Identifier: BSD-3-Clause
# replctl plan lists and explains the 72 rows, needs no target, and refuses what is none of its words.
. "$(dirname "$0")/lib.sh"

# Neither a configuration nor a network is looked at.
REPL_CONFIG=$TMP/none.conf
export REPL_CONFIG
ctl plan --all --csv >"$TMP/all.csv" || fail "plan --all --csv"
[ "$(head -n 1 "$TMP/all.csv")" = domain,ddio,rqwrb,op,update,steps ] || fail "header"
[ "$(wc -l <"$TMP/all.csv")" -eq 73 ] || fail "not 72 rows"
python3 - "$TMP/all.csv" <<'END' || fail "the CSV"
import csv, itertools, sys
rows = list(csv.reader(open(sys.argv[1], newline="")))[1:]
keys = itertools.product(["dmp", "mhp", "wsp"], ["on", "off"], ["dram", "pm"],
                         ["write", "writeimm", "send"], ["singleton", "compound"])
assert [tuple(r[:5]) for r in rows] == list(keys)
assert all(len(r) == 6 for r in rows)
got = {tuple(r[:5]): r[5] for r in rows}
for key, steps in {
    "dmp on dram write singleton": "write(a) send(&a) rsp-flush(&a) ack",
    "dmp off pm write compound": "write(a) flush write-atomic(b) flush comp",
    "dmp off dram send compound": "send(a,b) rsp-copy(a,b) rsp-flush(a,b) ack",
    "mhp on pm send singleton": "send(a) flush comp",
    "wsp off pm writeimm compound": "writeimm(a) writeimm(b) comp",
}.items():
    assert got[tuple(key.split())] == steps, key
END
grep -q '^dmp,off,pm,send,compound,"send(a,b) flush comp"$' "$TMP/all.csv" || fail "quotes"
ctl plan --csv | cmp -s - "$TMP/all.csv" || lost "no options is not all rows"
[ "$(ctl plan --domain wsp --op send --csv | tail -n +2 | wc -l)" -eq 8 ] || fail "eight rows"
grep '^wsp,.*,send,' "$TMP/all.csv" | cmp -s - <(ctl plan --op send --domain wsp --csv | tail -n +2) ||
	fail "the rows that match"

row="--domain dmp --ddio off --rqwrb dram --op write --update compound"
# shellcheck disable=SC2086
ctl plan $row >"$TMP/out" || fail "one row"
for words in "^ddio  *off" "^  write-atomic(b)  *non-posted" "^  read  *RDMA read" "no fabric has an atomic write" \
	"^method  *appliance$"; do
	grep -q -- "$words" "$TMP/out" || fail "no '$words' in: $(cat "$TMP/out")"
done
# shellcheck disable=SC2086
[ "$(ctl plan $row --json | member rows.0.today.3)" = "write(b)" ] || fail "JSON"

# By iWARP, WSP needs what MHP needs.
ctl plan --domain wsp --transport iwarp --csv | tail -n +2 | cut -d , -f 2- >"$TMP/wsp"
ctl plan --domain mhp --csv | tail -n +2 | cut -d , -f 2- | cmp -s - "$TMP/wsp" || lost "iwarp"

ctl_fails 2 "'adr' is none of dmp, mhp, wsp" plan --domain adr
ctl_fails 2 "'maybe' is none of on, off" plan --ddio maybe
ctl_fails 2 "'pmem' is none of dram, pm" plan --rqwrb pmem
ctl_fails 2 "'read' is none of write, writeimm, send" plan --op read
ctl_fails 2 "'pair' is none of singleton, compound" plan --update pair
ctl_fails 2 "'roce' is none of ib, iwarp" plan --transport roce
ctl_fails 2 "leave out" plan --all --op write
ctl_fails 2 "exclude" plan --json --csv
ctl_fails 2 "takes 0 arguments" plan somewhere
ctl_fails 2 "options of plan" list --csv host
