# SPDX-License-Identifier: BSD-3-Clause
# pin.sh - each side on a core of its own, sourced behind lib.sh. On few cores a
# scheduler that puts both sides of one session on the same core makes it three
# times as slow as the session beside it, for as long as it likes.
cores=$(nproc)

# What repld serve starts from now on.
pin_target() {
	[ "$cores" -lt 2 ] || taskset -a -c -p 1 "$SERVE_PID" >/dev/null || fail "taskset"
}

# pinned COMMAND...: the initiator.
pinned() {
	if [ "$cores" -lt 2 ]; then
		"$@"
	else
		taskset -c 0 "$@"
	fi
}
