#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Get what guest.sh boots: Debian's stock kernel with its modules, unpacked and not installed, and
# an initrd. Prints the directory; the files there are vmlinux, initrd and modules/VERSION.
#
# usage: kernel.sh
#
# The directory is below $REPL_VM_CACHE, or the user's cache directory. It is made once for each
# version of the kernel and of init. Exit status 77, with the reason, where it can't be had.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

skip()
{
	printf 'vm: skipped: %s\n' "$*" >&2
	exit 77
}

[ "$(uname -m)" = x86_64 ] || skip "guests are made for x86_64, this is $(uname -m)"
for tool in qemu-system-x86_64 busybox depmod cpio python3 dpkg-deb apt-get; do
	PATH=$PATH:/sbin:/usr/sbin command -v "$tool" >/dev/null ||
		skip "there is no $tool: packaging/install-deps.sh vm"
done
PATH=$PATH:/sbin:/usr/sbin

# HOME may be a test's.
home=$(getent passwd "$(id -u)" | cut -d : -f 6)
cache=${REPL_VM_CACHE:-${XDG_CACHE_HOME:-$home/.cache}/repl-vm}
mkdir -p "$cache" || skip "no directory $cache"
exec 9>"$cache/lock"
flock 9

# apt's answer holds until its lists change: it takes apt a second to give it.
package=
[ ! "$cache/package" -nt /var/lib/apt/lists ] || package=$(cat "$cache/package")
if [ -z "$package" ]; then
	package=$(apt-cache depends linux-image-amd64 2>/dev/null |
		awk '/ Depends: linux-image-[0-9]/ && !seen++ { print $NF }')
	[ -z "$package" ] || printf '%s\n' "$package" >"$cache/package"
fi
if [ -z "$package" ]; then
	# Without apt's lists the newest one that was made before.
	package=$(cd "$cache" && ls -d linux-image-*/ 2>/dev/null | sort -V | tail -n 1 |
		sed 's|-[0-9a-f]*/$||')
	[ -n "$package" ] || skip "apt knows no linux-image-amd64: apt-get update"
fi
dir=$cache/$package-$(cat "$here/init" "$0" | sha256sum | cut -c 1-12)
if [ -e "$dir/initrd" ]; then
	touch "$dir"
	printf '%s\n' "$dir"
	exit
fi

work=$(mktemp -d "$cache/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT

deb=$(ls "$cache/$package"_*.deb 2>/dev/null | tail -n 1)
if [ -z "$deb" ]; then
	(cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package" >download.log 2>&1) ||
		skip "apt-get can't download $package: $(tail -n 1 "$work/download.log")"
	mv "$work/$package"_*.deb "$cache"
	deb=$(ls "$cache/$package"_*.deb | tail -n 1)
fi
dpkg-deb -x "$deb" "$work/tree"
mkdir "$work/out"
# /lib is a link where distributions have merged it.
modules=$(ls -d "$work"/tree/lib/modules/* "$work"/tree/usr/lib/modules/* 2>/dev/null | head -n 1)
version=$(basename "$modules")
mkdir -p "$work/out/modules"
mv "$modules" "$work/out/modules/$version"
mkdir -p "$work/tree/depmod/lib"
ln -s "$work/out/modules" "$work/tree/depmod/lib/modules"
depmod -b "$work/tree/depmod" "$version"

# QEMU starts an ELF file right away; a bzImage would be unpacked by slow emulation.
python3 - "$work/tree/boot/vmlinuz-$version" "$work/out/vmlinux" <<'END' ||
import gzip, lzma, sys
image = open(sys.argv[1], "rb").read()
for magic, unpack in ((b"\xfd7zXZ\0", lzma.LZMADecompressor), (b"\x1f\x8b\x08", None)):
    at = image.find(magic)
    while at >= 0:
        try:
            if unpack:
                kernel = unpack().decompress(image[at:])
            else:
                import zlib
                kernel = zlib.decompressobj(31).decompress(image[at:])
            if kernel[:4] == b"\x7fELF":
                open(sys.argv[2], "wb").write(kernel)
                sys.exit(0)
        except (lzma.LZMAError, OSError, Exception):
            pass
        at = image.find(magic, at + 1)
sys.exit(1)
END
	skip "no kernel that this script can unpack in $deb"

# The initrd has what it takes to reach the machine's file tree; modprobe does the rest from there.
root=$work/initrd
mkdir -p "$root"/{bin,dev,proc,sys,modules,host,over,root}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
# shellcheck disable=SC2043
for module in virtio_pci virtio_console 9pnet_virtio 9p overlay; do
	modprobe -d "$work/tree/depmod" -S "$version" -n --show-depends --ignore-install "$module"
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$work/list"
number=100
while read -r file; do
	name=$root/modules/$number-$(basename "$file")
	case $file in
	*.xz) xz -dc "$file" >"${name%.xz}" ;;
	*.zst) zstd -qdc "$file" >"${name%.zst}" ;;
	*) cp "$file" "$name" ;;
	esac
	number=$((number + 1))
done <"$work/list"
[ "$number" -gt 100 ] || skip "no modules in $deb"
(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet) >"$work/out/initrd"

rm -rf "$dir"
mv "$work/out" "$dir"
# Those of older versions are of no use any more, but from one that was asked for a day ago or less a guest
# of another checkout may run.
find "$cache" -maxdepth 1 -name 'linux-image-*' -type d ! -path "$dir" -mtime +0 -exec rm -rf {} +
printf '%s\n' "$dir"
