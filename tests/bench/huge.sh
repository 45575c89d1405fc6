#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# huge.sh COMMAND... - run a command whose TMPDIR is a tmpfs of its own with huge pages, in a
# mount namespace that ends with it. Where one may not mount, nothing is run: exit 77.
dir=$(mktemp -d) || exit 1
trap 'rmdir "$dir"' EXIT
export dir

in_namespace=(unshare -m) as_before=()
if [ "$(id -u)" -ne 0 ]; then
	in_namespace=(unshare -rm)
	# What serves does not run as root.
	as_before=(unshare -U "--map-user=$(id -u)" "--map-group=$(id -g)")
fi
mounting='mount -t tmpfs -o huge=always,mode=1777 tmpfs "$dir"'
"${in_namespace[@]}" bash -c "$mounting" || {
	echo "no tmpfs with huge pages here" >&2
	exit 77
}
"${in_namespace[@]}" bash -c "$mounting"' && TMPDIR=$dir exec "$@"' - "${as_before[@]}" "$@"
