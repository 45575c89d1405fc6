# SPDX-License-Identifier: BSD-3-Clause
# On a terminal something stands at once: what is connected to, then a bar, however long the target takes for its first answer.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >pool

# on_terminal VERB ARG...: replctl while the target is stopped, until it says what it waits for.
on_terminal() {
	signalled STOP "$SERVE_PID"
	timeout 60 python3 - "$SERVE_PID" "$@" >seen 2>&1 <<'END' || fail "$*: $(cat -v seen)"
import os, pty, signal, sys
tmp = os.environ["TMP"]
pid, fd = pty.fork()
if pid == 0:
    program = os.environ["REPLCTL"]
    os.execv(program, [program, "--identity", tmp + "/key", "--known-hosts", tmp + "/known_hosts"] + sys.argv[2:])
seen = b""
while b"connecting to" not in seen:
    seen += os.read(fd, 65536)
os.kill(int(sys.argv[1]), signal.SIGCONT)
try:
    while True:
        seen += os.read(fd, 65536)
except OSError:
    pass
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
	grep -q "$1   0% \[>" seen || fail "no bar: $(cat -v seen)"
	# What comes behind it stands on a line without it.
	tr '\r' '\n' <seen | grep -q "connecting.*replctl:" && fail "$*: $(cat -v seen)"
	return 0
}
export REPLCTL

on_terminal sync pool "$T/p"
tr '\r' '\n' <seen | grep -q "^replctl: made the pool" || fail "what is told: $(cat -v seen)"
on_terminal sync pool "$T/p"
on_terminal restore "$T/p" copy
on_terminal verify pool "$T/p"
cmp -s pool copy || lost "contents"

# Where there is none, nothing of that.
ctl sync pool "$T/p" 2>err >out || fail "sync"
[ ! -s err ] || fail "on no terminal: $(cat err)"
