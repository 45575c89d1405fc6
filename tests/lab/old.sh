#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Build repld and librepl.so of the version before this one, from the history, into
# BUILD/tests/lab/old; prints that directory. Fails where there is no history.
#
# usage: old.sh BUILD
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
old=275672b
dir=$1/tests/lab/old
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
if [ ! -e "$dir/built" ]; then
	rm -rf "$dir/source" "$dir/build"
	mkdir "$dir/source"
	git -C "$source" archive "$old" | tar -x -C "$dir/source"
	cmake -S "$dir/source" -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		>"$dir/log" 2>&1
	cmake --build "$dir/build" -j2 --target repld librepl >>"$dir/log" 2>&1
	touch "$dir/built"
fi
echo "$dir/build"
