#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Build and test everything, on a fresh Debian 12 machine too.
#
#   tests/run.sh            gcc, gcc with sanitizers, clang; all tests but those
#                           labelled nightly, those labelled sanitized by the
#                           second only, those labelled unsanitized by the first
#   tests/run.sh --all      all tests but those labelled nightly by the first two
#   tests/run.sh --quick    gcc; the tests labelled unit
#
# Ends with a summary, what has failed at a first try or was skipped, and the closing lines of ctest: of
# the stage that failed, else of the release build. The exit status is 0 only if every
# stage passed; one of tests does not where a byte was lost, whatever the second try said.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
exec </dev/null

quick=false
left='^(nightly|sanitized)$'
slow='^(nightly|bench|unsanitized)$'
case "${1-}" in
'') ;;
--all)
	left='^nightly$'
	slow='^(nightly|bench)$'
	;;
--quick) quick=true ;;
*)
	printf 'usage: %s [--all | --quick]\n' "$0" >&2
	exit 2
	;;
esac

export CTEST_OUTPUT_ON_FAILURE=1

# Where python3 is a version manager's script that takes longer than most of what it is started for.
python=$(dirname "$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)") && [ -x "$python/python3" ] &&
	PATH=$python:$PATH

logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
summary=()
failed=false
closing=

# stage NAME COMMAND...: run it, show and keep its output, note how it went.
stage()
{
	local name=$1 start=$SECONDS verdict=passed

	shift
	printf '\n=== %s\n' "$name"
	if ! "$@" 2>&1 | tee "$logs/$name"; then
		verdict=FAILED
		failed=true
	fi
	summary+=("$(printf '%-16s %s, %d s' "$name" "$verdict" $((SECONDS - start)))")
	[ $verdict = passed ]
}

# One at a time in this tree: quickstart.sh may be building.
build()
(
	flock 9
	cmake --preset "$1" -DREPL_WERROR=ON -DBUILD_TESTING=ON &&
		cmake --build --preset "$1" -j "$(nproc)" -- -k 0
) 9<.

# without_symbols COMMAND...: run it where /proc/kallsyms is empty, if that may be
# done. libfabric's verbs provider reads all of it whenever a program first asks for
# a provider, for a symbol that only memory of graphics cards needs, and that is most
# of the CPU time of a short program.
without_symbols()
{
	local mask='mount --bind /dev/null /proc/kallsyms'

	if unshare --mount sh -c "$mask" 2>/dev/null; then
		unshare --mount sh -c "$mask && exec \"\$@\"" sh "$@"
	else
		"$@"
	fi
}

# closed_to_others: the highest directory on the way here that others may not enter.
closed_to_others()
{
	local at=/ name

	while read -r -d / name; do
		at=${at%/}/$name
		if [ -z "$(find "$at" -maxdepth 0 -perm -o=x)" ]; then
			printf '%s\n' "$at"
			return
		fi
	done <<<"${PWD#/}/"
}

# open_up DIRECTORY: all that is in it stays, in a directory that others may enter.
open_up()
{
	local keep entry

	shopt -s dotglob nullglob
	keep=$(mktemp -d) && mount --rbind "$1" "$keep" &&
		mount -t tmpfs -o mode=711 none "$1" || return
	for entry in "$keep"/*; do
		local there=$1/${entry##*/}

		if [ -L "$entry" ]; then
			cp -a "$entry" "$there"
		elif [ -d "$entry" ]; then
			mkdir "$there" && mount --rbind "$entry" "$there"
		elif [ -f "$entry" ]; then
			touch "$there" && mount --bind "$entry" "$there"
		fi || return
	done
	umount -l "$keep" && rmdir "$keep"
}

# within_reach COMMAND...: run it where all directories above this one are open. Started by root,
# repld gives up root's rights, and must be able to start itself in a clone below /root, too.
within_reach()
{
	local closed

	closed=$([ "$(id -u)" -ne 0 ] || closed_to_others)
	if [ -z "$closed" ]; then
		"$@"
	elif unshare --mount true 2>/dev/null; then
		export -f closed_to_others open_up within_reach without_symbols
		unshare --mount bash -c 'open_up "$1" && cd "$PWD" && shift && within_reach "$@"' \
			bash "$closed" "$@"
	else
		printf 'run.sh: %s is closed to others, and repld runs as nobody: move the clone\n' \
			"$closed" >&2
		return 1
	fi
}

# run_tests PRESET [CTEST OPTION...]
run_tests()
{
	local preset=$1 places=3

	shift
	# Three places a core: most tests wait more than they compute, those that do not
	# take two (PROCESSORS), and with sanitizers they compute more. Deadlines are tested
	# by the clock, which a busy machine can spoil: what fails is run once more, both
	# runs are shown, and tries.sh says what that does not make good.
	[ "$preset" != asan ] || places=2
	within_reach without_symbols ctest --preset "$preset" --no-tests=error --repeat until-pass:2 \
		-j "$((places * $(nproc)))" "$@"
}

# check PRESET [CTEST OPTION...]: build and test; the first failure has the last word.
check()
{
	local preset=$1

	stage "build-$preset" build "$preset" || return
	stage "test-$preset" run_tests "$@" || closing=${closing:-test-$preset}
	stage "tries-$preset" tests/tries.sh "build-$preset" "$logs/test-$preset"
}

stage packages ./packaging/install-deps.sh test || exit 1
if $quick; then
	check release -L '^unit$'
else
	check release -LE "$left"
	check asan -LE "$slow"
	stage build-clang build clang
fi

printf '\n=== summary\n'
printf '%s\n' "${summary[@]}"
for tries in "$logs"/tries-*; do
	[ ! -s "$tries" ] || printf '\n=== failed at first, %s\n%s\n' "${tries##*tries-}" "$(<"$tries")"
done
for log in "$logs"/test-*; do
	skipped=$(sed -nE 's/^ *([0-9]+\/[0-9]+ +)?Test +#[0-9]+: ([^ ]+) \.+\*\*\*Skipped .*/\2/p' "$log" 2>/dev/null | sort)
	[ -z "$skipped" ] || printf '\n=== skipped, %s\n%s\n' "${log##*/test-}" "$skipped"
done
closing=${closing:-test-release}
if [ -f "$logs/$closing" ]; then
	printf '\n=== %s\n' "$closing"
	sed -n '/^[0-9]*% tests passed/,$p' "$logs/$closing"
fi
! $failed
