#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The whole way once, on one machine and over loopback: a program keeps its
# pool on a target, which is lost and comes back; the program dies while it
# writes, its pool is lost, and comes back.
#
#   packaging/quickstart.sh
#
# Installs the packages that building takes, and touches nothing else of the
# machine: what it makes lies in build-release and in a temporary directory,
# which is gone at the end. Exit status 0 if every acknowledged update is there.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
umask 022

dir=
log=
serve_pid=
writer_pid=
step='before the first step'
building=false
passed=false

say()
{
	step=$1
	printf '\n== %s\n' "$1"
}

# run COMMAND: show it as a user would type it, and do it.
run()
{
	printf '   $ %s\n' "$1"
	eval "$1"
}

die()
{
	printf 'quickstart: %s\n' "$*" >&2
	exit 1
}

# show FILE
show()
{
	sed "s|^|   $1: |" "$1"
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for()
{
	local tries=$(($1 * 20))

	shift
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}

stop()
{
	[ -n "$1" ] || return 0
	kill -"$2" "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

# Of a process and all below it.
tree()
{
	local child

	printf '%s ' "$1"
	for child in $(<"/proc/$1/task/$1/children"); do
		tree "$child"
	done
}

finish()
{
	local status=$?

	trap '' INT TERM HUP
	trap - EXIT
	stop "$writer_pid" KILL
	stop "$serve_pid" TERM
	if ! $passed && [ -n "$dir" ] && [ -s "$dir/repld.log" ]; then
		printf '\nThe end of the log of repld:\n' >&2
		tail -n 20 "$dir/repld.log" >&2
	fi
	rm -rf "$dir" "$log"
	# What cmake noted of a compiler that failed would have it fail the next time, too.
	$building && [ ! -e build-release/build.ninja ] &&
		rm -rf build-release/CMakeCache.txt build-release/CMakeFiles
	if $passed; then
		printf '\nPASS: every one of %s acknowledged updates is in the restored pool. (%d s)\n' \
			"$last" "$SECONDS"
		exit 0
	fi
	printf '\nFAIL: %s\n' "$step" >&2
	[ "$status" -ne 0 ] || status=1
	exit "$status"
}
trap finish EXIT
trap 'trap "" INT TERM HUP; step="interrupted: $step"; exit 130' INT TERM HUP

say 'Install what building takes, if it is missing'
run './packaging/install-deps.sh build'

# One at a time in this tree: another one, or the tests, may be building.
say 'Build'
exec 9<.
flock -n 9 || {
	printf '   another build in this directory is under way: waiting for its end\n'
	flock 9
}
building=true
log=$(mktemp)
quoted=$(printf %q "$log")
run "cmake --preset release -DBUILD_TESTING=OFF >$quoted 2>&1" &&
	run "cmake --build --preset release >>$quoted 2>&1" || {
	cat "$log"
	[ -s "$log" ] || die "the build failed, and nothing could be written to $log:" \
		'make room there, or name another directory by TMPDIR'
	die 'the build failed, see above'
}

# The account of the target must reach the programs, and a home directory is
# often closed to others.
say 'Install into a temporary directory'
dir=$(mktemp -d /tmp/repl-quickstart.XXXXXX)
chmod 755 "$dir"
run "cmake --install build-release --prefix $dir/usr >/dev/null"
building=false
exec 9<&-
[ -x "$dir/usr/bin/replctl" ] ||
	die "programs in $dir may not be executed: mount /tmp without noexec while this runs" \
		'(mount -o remount,exec /tmp)'
run "PATH=$dir/usr/bin:$dir/usr/sbin:$(printf %q "$PWD")/build-release/packaging:\$PATH"
run "cd $dir"
# Neither the keys nor the settings of whoever runs this.
HOME=$dir
unset SSH_AUTH_SOCK REPL_CONFIG
export HOME PATH

user=$(id -un)
[ "$(id -u)" -ne 0 ] || user=nobody
say "Target: repld serve on loopback, as the user $user, with fresh keys"
run "ssh-keygen -q -t ed25519 -N '' -C quickstart -f key"
run 'mkdir target && mkdir -m 700 target/pools'
run 'cp key.pub target/authorized_keys'
{
	printf '[repld]\npool-dir = %s\nlisten = 127.0.0.1:0\n' "$dir/target/pools"
	printf 'host-key = %s\nauthorized-keys = %s\n' "$dir/target/host_key" \
		"$dir/target/authorized_keys"
	[ "$(id -u)" -ne 0 ] || printf 'user = %s\n' "$user"
} >repld.conf
show repld.conf
[ "$(id -u)" -ne 0 ] || run "chown -R $user target"
serve()
{
	run 'repld serve --config repld.conf 2>repld.log &'
	serve_pid=$!
	wait_for 10 grep -q 'listening on' repld.log || die 'repld serve did not start'
}
serve
port=$(sed -n 's/.*listening on .*:\([0-9][0-9]*\)$/\1/p' repld.log | tail -n 1)

say 'The program must know the key of the target before it connects'
run "echo \"[127.0.0.1]:$port \$(ssh-keygen -y -f target/host_key)\" >known_hosts"
printf '[repl]\nidentity = %s\nknown-hosts = %s\n' "$dir/key" "$dir/known_hosts" >repl.conf
show repl.conf
run "export REPL_CONFIG=$dir/repl.conf"
target=$user@127.0.0.1:$port/ledger.pool

say 'A program keeps a counter and records in a pool, durable on the target'
run "ledger write ledger.pool $target >acknowledged &"
writer_pid=$!
enough()
{
	[ "$(wc -l <acknowledged)" -ge "$1" ]
}
wait_for 5 enough 500 || wait_for 20 enough 1 ||
	die 'no update of the program was acknowledged'
run "replctl status ${target%/*}"

say 'The target dies: the program goes on, and what the target misses is noted'
{
	run "kill -KILL $(tree "$serve_pid")"
	wait "$serve_pid"
} 2>/dev/null || true
serve_pid=
degraded()
{
	local status=0

	replctl status ./ledger.pool >status.txt 2>&1 || status=$?
	[ "$status" -eq 5 ]
}
wait_for 10 degraded || die 'replctl status does not tell that the target is lost'
goes_on()
{
	wait_for 20 enough $(($(wc -l <acknowledged) + 100)) || die 'the program does not go on'
}
goes_on
run 'replctl why ./ledger.pool'

say 'The target is there again, at the same port: it gets what it has missed'
sed -i "s/^listen = .*/listen = 127.0.0.1:$port/" repld.conf
serve
run 'replctl resume ./ledger.pool'
run 'replctl wait ./ledger.pool --timeout 60' || die 'the replica did not come back'
goes_on
run 'replctl status ./ledger.pool'

say 'The machine dies: SIGKILL while the program writes, and the local pool is gone'
kill -0 "$writer_pid" 2>/dev/null || die 'the program ended before it was killed'
run "kill -KILL $writer_pid"
wait "$writer_pid" 2>/dev/null || [ $? -eq 137 ] ||
	die 'the program ended before it was killed'
writer_pid=
last=$(tail -n 1 acknowledged)
printf '   update %s is the last one that was acknowledged\n' "$last"
run 'rm ledger.pool ledger.pool.repl'

# Status 4: the target has not yet seen that the connection broke.
restore()
{
	local try status

	for try in 1 2 3 4 5; do
		status=0
		run "replctl restore $target ledger.pool" || status=$?
		[ "$status" -eq 4 ] && [ "$try" -lt 5 ] || return "$status"
		sleep 1
	done
}
say 'Get the pool back'
restore || die 'replctl restore failed'
run "replctl verify ledger.pool $target" || die 'replctl verify failed'

say 'Look for every acknowledged update'
run "ledger check ledger.pool $last" || die 'updates are missing'
passed=true
