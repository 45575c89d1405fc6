#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Build repld and librepl.so of the version before this one, from the history, into
# BUILD/tests/lab/old; prints that directory. Fails where there is no history. It is one
# that writes journals, dirty maps, round logs and position records, of pool format 3.3.
#
# usage: old.sh BUILD
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
old=c3d1b3d
dir=$1/tests/lab/old
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
if [ "$(cat "$dir/built" 2>/dev/null)" != "$old" ]; then
	rm -rf "$dir/built" "$dir/source" "$dir/build"
	mkdir "$dir/source"
	git -C "$source" archive "$old" | tar -x -C "$dir/source"
	cmake -S "$dir/source" -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		>"$dir/log" 2>&1
	cmake --build "$dir/build" -j2 --target repld librepl >>"$dir/log" 2>&1
	echo "$old" >"$dir/built"
fi
echo "$dir/build"
