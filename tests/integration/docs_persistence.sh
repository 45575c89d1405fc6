# SPDX-License-Identifier: BSD-3-Clause
# The table of docs/PERSISTENCE.md is what replctl plan says.
#
# With UPDATE=1 it is written anew instead of compared.
. "$(dirname "$0")/lib.sh"
doc=$(dirname "$0")/../../docs/PERSISTENCE.md

ctl plan --all --json >"$TMP/rows" || fail "plan --all --json"
python3 - "$TMP/rows" "$doc" "$TMP/doc" <<'END' || fail "no table in $doc"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
names = ["domain", "ddio", "rqwrb", "op", "update"]
table = ["| " + " | ".join(names) + " | steps | method |", "|" + "---|" * 7]
for row in rows:
    table.append("| %s | `%s` | %s |" % (" | ".join(row[n] for n in names),
                                         " ".join(row["steps"]), row["method"]))
text = open(sys.argv[2]).read()
before, rest = text.split("<!-- table -->\n")
old, after = rest.split("<!-- end of table -->\n")
open(sys.argv[3], "w").write(before + "<!-- table -->\n" + "\n".join(table) +
                             "\n<!-- end of table -->\n" + after)
END
[ "$(grep -c '^| [dmw][mhs]p |' "$TMP/doc")" -eq 72 ] || fail "not 72 rows"
if [ -n "${UPDATE-}" ]; then
	cp "$TMP/doc" "$doc"
fi
diff -u "$doc" "$TMP/doc" >&2 || fail "the table is out of date: UPDATE=1 bash $0"
