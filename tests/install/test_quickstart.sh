#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packaging/quickstart.sh passes in directories with a blank in their names, and cleans up when it is
# interrupted while it does, whatever the umask; two do not build at once; a build that fails where nothing can be written
# says so, and leaves nothing that the next one would stumble over.
# usage: test_quickstart.sh PREFIX
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/a clone" "$dir/t m p" "$dir/bin"
cp -r "$source/packaging" "$dir/a clone"

# Instead of building it takes what is built.
cat >"$dir/bin/cmake" <<END
#!/bin/bash
set -e
mkdir -p build-release/packaging build-release/CMakeFiles
case \$1 in
--preset)
	mkdir '$dir/busy' || touch '$dir/both'
	sleep 0.3
	rmdir '$dir/busy'
	touch build-release/CMakeCache.txt
	[ ! -e '$dir/fails' ]
	touch build-release/build.ninja
	;;
--build) ln -sf '$1/../../../packaging/ledger' build-release/packaging/ ;;
--install)
	mkdir -p "\$4"
	cp -r '$1/.' "\$4"
	mv "\$4/sbin/repld" "\$4/sbin/built"
	cp '$dir/repld' "\$4/sbin"
	;;
esac
END
# It takes its time to end.
cat >"$dir/repld" <<END
#!/bin/bash
"\${0%/*}/built" "\$@" &
trap "sleep 0.5; kill \$!" TERM
wait
END
chmod 755 "$dir" "$dir/bin/cmake" "$dir/repld"
quickstart()
{
	(
		umask 077
		TMPDIR="$dir/t m p" PATH=$dir/bin:$PATH exec "$dir/a clone/packaging/quickstart.sh" >>"$dir/out" 2>&1
	)
}
fail()
{
	cat "$dir/out"
	printf 'FAIL: %s\n' "$1"
	exit 1
}

touch "$dir/fails"
quickstart &
! quickstart || fail 'a build that fails passes'
! wait $! || fail 'a build that fails passes'
[ ! -e "$dir/both" ] || fail 'two build at once'
grep -F 'nothing could be written' "$dir/out" | grep -F "make room there, or name another directory by TMPDIR" ||
	fail 'it does not say why nothing is above'
[ -z "$(find "$dir/a clone/build-release" "$dir/t m p" -type f; ls "$dir/a clone/build-release/CMakeFiles" 2>/dev/null)" ] ||
	fail 'it leaves files'
rm "$dir/fails"
quickstart &
until grep 'all records whole' "$dir/out" >/dev/null; do
	kill -0 $! 2>/dev/null || fail 'quickstart'
	sleep 0.05
done
kill -TERM "$(pgrep -o -P $!)"
wait $! || fail 'it was interrupted while it cleaned up'
tail -n 1 "$dir/out"
[ -z "$(ls "$dir/t m p")" ] || fail 'it leaves files in TMPDIR'
[ ! -e "$(sed -n 's/.*--prefix \(.*\)\/usr .*/\1/p' "$dir/out")" ] || fail 'it leaves its directory'
