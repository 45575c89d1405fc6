# SPDX-License-Identifier: BSD-3-Clause
# With --json standard output is one object, in UTF-8 and without control characters, whatever files are called.
. "$(dirname "$0")/lib.sh"
cd "$TMP" || exit 1

# is_json EXPRESSION: the output is an object o, and the expression holds.
is_json() {
	python3 -c 'import json, sys
text = sys.stdin.buffer.read()
o = json.loads(text.decode("utf-8"))
assert not [c for c in text.decode("utf-8") if c != "\n" and (c < " " or "\x7f" <= c < "\xa0")]
assert eval(sys.argv[1]), sys.argv[1]' "$1" <"$TMP/out" 2>"$TMP/err" || fail "$1: $(cat -v "$TMP/out" "$TMP/err")"
}

odd=$(printf 'a\377b\177c\302\205d\033e')
: >"$odd"
"$REPLCTL" --json why "./$odd" >out || fail "why: exit $?"
is_json 'o["reason"] and len(o["evidence"]) == 2'
echo nonsense >"$odd.repl"
"$REPLCTL" --json why "./$odd" >out || fail "why: exit $?"
is_json 'o["reason"] == "damaged"'
# A text that is too long ends between two characters, wherever that is.
long=$(python3 -c 'print("/".join(["\u20ac" * 80] * 6))')
mkdir -p "${long%/*}" && : >"$long"
for lead in . ./. .//.; do
	"$REPLCTL" --json why "$lead/$long" >out || fail "why: exit $?"
	is_json 'o["reason"] == "failed"'
done

"$REPLCTL" help --json >out || fail "help"
is_json '[c for c in o["commands"] if c["name"] == "sync" and c["args"] and c["help"]]'
"$REPLCTL" help --json sync >out || fail "help sync"
is_json 'o["name"] == "sync" and [p for p in o["options"] if p["option"] == "-n, --dry-run" and p["help"]]'
"$REPLCTL" --json sync --help >out || fail "sync --help"
is_json 'o["name"] == "sync"'
"$REPLCTL" --json help bench remotelog >out || fail "help bench remotelog"
is_json 'o["name"] == "bench remotelog"'
"$REPLCTL" --json help nothing >out && fail "no such command"
is_json 'o["error"]["exit"] == 2'
"$REPLCTL" --json --version >out || fail "--version"
is_json 'o["version"]'
