#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tests of "replctl run" with the PMDK of another release of Debian, whose packages are unpacked
# in a temporary directory, checked by Debian's keys, and gone at the end. Not part of tests/run.sh.
#
#   tests/integration/run_with.sh RELEASE [BUILD-DIR [REGEX]]
#
# RELEASE is a suite, as trixie or sid; BUILD-DIR is build-release unless given, REGEX what ctest
# runs of it. The packages must run on this machine's libc.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -ge 1 ] && [ $# -le 3 ] || {
	printf 'usage: %s RELEASE [BUILD-DIR [REGEX]]\n' "$0" >&2
	exit 2
}
release=$1
build=${2:-build-release}
regex=${3:-integration.run_}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# apt gives up its rights for what it fetches.
chmod 755 "$dir"

mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/debs" "$dir/root"
echo "deb [signed-by=$keys] http://deb.debian.org/debian $release main" >"$dir/sources.list"
: >"$dir/status"
apt() {
	apt-get -qq -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$dir/lists" -o Dir::State::Status="$dir/status" \
		-o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root "$@"
}
apt update
(cd "$dir/debs" && apt download libpmem1 libpmem2 libpmemobj1 libpmempool1 pmdk-tools)
# Releases that have them no longer come without.
(cd "$dir/debs" && apt download libpmemlog1 libpmemblk1) 2>/dev/null || true
for deb in "$dir"/debs/*.deb; do
	dpkg-deb -x "$deb" "$dir/root"
done

LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*/) PATH=$dir/root/usr/bin:$PATH
export LD_LIBRARY_PATH PATH
pmempool --version 2>/dev/null
ctest --test-dir "$build" --output-on-failure -LE nightly -R "$regex"
