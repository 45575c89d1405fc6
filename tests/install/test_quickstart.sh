#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packaging/quickstart.sh passes in directories with a blank in their names.
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
mkdir -p build-release/packaging
case \$1 in
--preset) ;;
--build) ln -sf '$1/../../../packaging/ledger' build-release/packaging/ ;;
--install)
	mkdir -p "\$4"
	cp -r '$1/.' "\$4"
	;;
esac
END
chmod 755 "$dir" "$dir/bin/cmake"
quickstart()
{
	TMPDIR="$dir/t m p" PATH=$dir/bin:$PATH "$dir/a clone/packaging/quickstart.sh" >"$dir/out" 2>&1
}
fail()
{
	cat "$dir/out"
	printf 'FAIL: %s\n' "$1"
	exit 1
}

quickstart || fail 'quickstart'
tail -n 1 "$dir/out"
[ -z "$(ls "$dir/t m p")" ] || fail 'it leaves files in TMPDIR'
