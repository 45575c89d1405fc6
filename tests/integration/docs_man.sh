# SPDX-License-Identifier: BSD-3-Clause
# Man pages are free of mistakes that mandoc sees, their prototypes are those of librepl.h, and repld.conf.example has all
# keys of repld.conf(5).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
command -v mandoc >/dev/null || { echo "skipped: no mandoc"; exit 77; }

mandoc -T lint -W warning "$root"/docs/man/* >&2 || exit 1
for key in $(sed -n 's/^\.It Ic \([a-z-]*\) .*/\1/p' "$root/docs/man/repld.conf.5"); do
	grep -q "^#*$key = " "$root/packaging/repld.conf.example" || { echo "repld.conf.example lacks '$key'"; exit 1; }
done
python3 - "$root"/librepl/include/librepl.h "$root"/docs/man/*.[37] <<'END'
import re, sys

def plain(text):
    return re.sub(r"\s*([*(),])\s*", r"\1", " ".join(text.split()))

def words(line):
    return [a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', line)]

header = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
declared = {}
for text in re.findall(r"^REPL_API ([^;]*);", header, flags=re.M):
    text = plain(text.replace("REPL_MUST_CHECK", ""))
    declared[re.search(r"(\w+)\(", text).group(1)] = text

wrong = 0
shown = set()
for page in sys.argv[2:]:
    synopsis = re.search(r"^\.Sh SYNOPSIS\n(.*?)^\.Sh ", open(page).read(), flags=re.M | re.S)
    kind, name, args = "", "", []
    for line in synopsis.group(1).splitlines() if synopsis else []:
        macro, *rest = words(line)
        if macro == ".Ft":
            kind = " ".join(rest)
            continue
        if macro == ".Fa":
            args += rest
            continue
        if macro in (".Fo", ".Fn"):
            name, args = rest[0], rest[1:]
        if macro not in (".Fc", ".Fn") or not name.startswith("repl_"):
            continue
        text = plain("%s %s(%s)" % (kind, name, ",".join(args) or "void"))
        shown.add(name)
        if text != declared.get(name):
            print("%s: '%s', but librepl.h: '%s'" % (page, text, declared.get(name)))
            wrong = 1
for name in sorted(set(declared) - shown):
    print("%s has no prototype in a man page" % name)
    wrong = 1
if len(declared) < 30:
    print("only %d functions found in librepl.h" % len(declared))
    wrong = 1
sys.exit(wrong)
END
