# SPDX-License-Identifier: BSD-3-Clause
# While resolve waits for an answer nothing is held: what has changed by then is seen, and nothing is done. What it does not
# decide, since nothing says that it is of one pool, is done by what it names.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
P=serve/pools

# asked COMMAND ARG...: replctl on a terminal; the command is run before the question is answered by yes.
asked() {
	timeout 60 python3 - "$@" >"$TMP/asked" 2>&1 <<'END'
import os, pty, subprocess, sys
tmp = os.environ["TMP"]
pid, fd = pty.fork()
if pid == 0:
    program = os.environ["REPLCTL"]
    os.execv(program, [program, "--identity", tmp + "/key", "--known-hosts", tmp + "/known_hosts"] + sys.argv[2:])
seen = b""
try:
    while b"Type yes" not in seen:
        seen += os.read(fd, 65536)
    subprocess.run(["sh", "-c", sys.argv[1]], check=True)
    os.write(fd, b"yes\n")
    while True:
        seen += os.read(fd, 65536)
except OSError:
    pass
print(seen.decode(errors="replace"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
}
export REPLCTL

# A session that marks the replica, in the generation that it has, as a copy does that is then cut off.
cat >cut_off <<END
{
	echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
	echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"p","mode":"write"}}'
	echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":{"state":"inconsistent"}}'
	sleep 1
} | "$CHANNEL_CAT" -i key -k known_hosts cat "$T" >marked
grep -q '"id": *3.*"result"' marked
END

head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null && ctl restore "$T/p" other >/dev/null || fail "sync"
change other 5000
ctl sync other "$T/p" >/dev/null || fail "the other one goes on"
change pool 9000
ctl sync pool "$T/q" >/dev/null || fail "the file goes on"
cp pool saved

# A copy into the replica began and was cut off: by its generation it is still what it was.
asked "sh cut_off" resolve --discard local pool "$T/p"
[ $? = 4 ] && grep -q "have changed since" asked || fail "a state that has changed: $(cat asked)"
cmp -s saved pool || lost "the file was replaced by a part of a copy"

# A program goes on with the file and closes it, which by its times, as on tmpfs, is what it was.
cat >goes_on <<END
touch -r pool times
head -c 8 /dev/urandom | dd of=pool bs=1 seek=20000 conv=notrunc status=none
"$REPLCTL" --identity key --known-hosts known_hosts sync pool "$T/q" >synced 2>&1 || exit
touch -r times pool
cp pool saved
END
ctl sync --force other "$T/p" >/dev/null || fail "sync"
for whose in local replica; do
	asked "sh goes_on" resolve --discard $whose pool "$T/p"
	status=$?
	cmp -s saved pool || lost "what it has been given since is discarded"
	cmp -s other $P/p || lost "the replica was overwritten"
	[ $status = 4 ] && grep -q "have changed since" asked || fail "a program that went on: $status, $(cat asked synced)"
done

# One that makes bytes of it durable while another has it open leaves a mark; one of before is of no account.
: >pool.repl-missed
asked ": >pool.repl-missed" resolve --discard local pool "$T/p"
status=$?
cmp -s saved pool || lost "what it has been given since is discarded"
[ $status = 4 ] && grep -q "have changed since" asked || fail "a mark: $status, $(cat asked)"

# What is as it was is done.
ctl sync --force other "$T/p" >/dev/null || fail "sync"
asked "sleep 0.1" resolve --discard local pool "$T/p" || fail "$(cat asked)"
cmp -s pool $P/p || lost "not the replica's data"

# A replica that was made by itself, and was filled under a record that is gone, has neither identity nor generation in common.
other_identity() {
	ctl_fails 4 "$T/o has another identity than pool, and no generation in common" resolve --dry-run --discard "$1" pool "$T/o"
	next=$(sed -n 's/^next: replctl verify pool [^ ]* (.*); \(\(mv .*; \)\{0,1\}\)replctl \([^(]*\) (.*/\1ctl \3/p' err)
	eval "$next" >out 2>err || fail "$1: '$next': $(cat out err)"
}
head -c 1048576 /dev/urandom >o
ctl sync o "$T/o" >/dev/null || fail "sync"
cp pool saved
other_identity local
cmp -s pool o && cmp -s pool.old saved || lost "not restored, or not kept"
mv pool.old pool
mv pool.old.repl pool.repl
other_identity replica
cmp -s $P/o saved && cmp -s pool saved || lost "not the file's data"
