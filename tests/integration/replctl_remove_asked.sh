# SPDX-License-Identifier: BSD-3-Clause
# Who is asked whether a pool may go is told that it is a primary; anything but "yes" is no, and what follows has a line of its own.
# A yes is for what was there when it was asked.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 65536 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "sync"

asked_of=$T/p
# answered TEXT [COMMAND]...: remove on a terminal; at the question somebody else does these of replctl's, then the text is typed.
answered() {
	timeout 60 python3 - "$asked_of" "$@" >asked 2>&1 <<'END'
import os, pty, subprocess, sys
tmp = os.environ["TMP"]
program = [os.environ["REPLCTL"], "--identity", tmp + "/key", "--known-hosts", tmp + "/known_hosts"]
pid, fd = pty.fork()
if pid == 0:
    os.execv(program[0], program + ["remove", sys.argv[1]])
seen = b""
try:
    while b"Type yes" not in seen:
        seen += os.read(fd, 65536)
    for command in sys.argv[3:]:
        subprocess.run(program + command.split(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    os.write(fd, sys.argv[2].encode().decode("unicode_escape").encode())
    while True:
        seen += os.read(fd, 65536)
except OSError:
    pass
print(seen.decode(errors="replace").replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
}
export REPLCTL

for answer in '\n' 'YES\n' 'yes please\n' ' yes\n' 'y\n' '\x04'; do
	answered "$answer"
	[ $? = 4 ] || fail "'$answer' is taken: $(cat asked)"
	grep -q "^replctl: not confirmed; nothing was changed" asked || fail "'$answer': $(cat asked)"
	grep -q "primary" asked && fail "a replica: $(cat asked)"
	ctl info "$T/p" >/dev/null || lost "'$answer': it is gone"
done

# changed PATTERN COMMAND...: the yes is for another pool than what is there by then.
changed() {
	pattern=$1
	shift
	answered 'yes\n' "$@"
	[ $? = 4 ] || fail "$*: it is removed all the same: $(cat asked)"
	grep -q "$pattern" asked || fail "$*: $(cat asked)"
	grep -q "^next: replctl .*info $T/p" asked || fail "$*: $(cat asked)"
	ctl info "$T/p" >/dev/null || lost "$*: it is gone"
}
changed "it is the primary now" "promote $T/p"
changed "not what it was" "demote $T/p"
changed "not what it was" "remove --force $T/p" "create $T/p --size 64K"
ctl remove --force "$T/p" >/dev/null || fail "remove"
ctl sync pool "$T/p" >/dev/null || fail "sync"

ctl promote "$T/p" >/dev/null || fail "promote"
answered '\n'
grep -q "p (64.0 KiB, up-to-date, the primary) and its data for good" asked || fail "$(cat asked)"
ctl remove --dry-run "$T/p" | grep -q "(64.0 KiB, the primary)" || fail "a dry run does not tell it"
answered 'yes\n' || fail "yes: $(cat asked)"
ctl_fails 3 "not found" info "$T/p"

# Who is not told that it is a primary has not said yes to that.
ctl sync pool "$T/p" >/dev/null && ctl promote "$T/p" >/dev/null || fail "sync, promote"
truncate -s 32768 "$TMP/serve/pools/p"
answered 'yes\n'
[ $? = 4 ] || fail "a damaged primary is removed: $(cat asked)"
grep -q "it is the primary now" asked && grep -q "^next: .*replctl .*remove --force $T/p" asked || fail "$(cat asked)"
[ -e "$TMP/serve/pools/p" ] || lost "the damaged primary is gone"
ctl remove --force "$T/p" >/dev/null || fail "remove --force"

# A yes for one that is damaged is none for one that is whole by then.
ctl sync pool "$T/p" >/dev/null || fail "sync"
truncate -s 32768 "$TMP/serve/pools/p"
changed "not what it was" "remove --force $T/p" "create $T/p --size 64K"
truncate -s 32768 "$TMP/serve/pools/p"
answered 'yes\n' || fail "a damaged one is not removed: $(cat asked)"
grep -q "(size unknown, damaged) and its data for good" asked || fail "$(cat asked)"
ctl_fails 3 "not found" info "$T/p"

# One of which nothing is told, since another hand had its files, is what was looked at.
mkdir "$TMP/serve/pools/d"
[ "$(id -u)" != 0 ] || chown --reference="$TMP/serve/pools" "$TMP/serve/pools/d"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n20M d\n' >"$TMP/serve/pools/s"
head -c 4194304 /dev/urandom >large
asked_of=$T/s
ctl sync large "$T/s" >/dev/null || fail "sync of a set"
ctl grow "$T/s" --size 8M >/dev/null || fail "grow"
set -- "$TMP/serve/pools/d"/*.pmem
[ $# -gt 1 ] || fail "it is one file: $*"
truncate -s +2M "$1"
[ "$(ctl info --json "$T/s" | member state)" = inconsistent ] || fail "a set with another file: $(ctl info "$T/s")"
answered 'yes\n' || fail "what was looked at is not removed: $(cat asked)"
ctl_fails 3 "not found" info "$T/s"
