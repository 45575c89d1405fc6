#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In a guest with an RDMA device in software: see verbs_guest.sh.
#
# usage: verbs.sh CELL...
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/verbs.XXXXXX") || exit 2
trap 'rm -rf "$dir"' EXIT
pmem=()
[[ " $* " != *" source "* ]] || pmem=(--pmem "$dir/nvdimm:64M")
"$here/guest.sh" --mem 1500 --timeout 400 "${pmem[@]}" -- \
	env BUILD="${BUILD:?directory of the built programs}" bash "$here/verbs_guest.sh" "$@"
