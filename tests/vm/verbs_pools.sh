#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Over an RDMA device each method that is correct for a pool ends with the bytes on the target, and the others are refused.
cd "$(dirname "$0")" || exit 1
exec ./guest.sh --mem 1500 --timeout 400 -- env BUILD="$BUILD" \
	bash -c 'ulimit -l unlimited; . ./verbs_guest.sh' ../integration/verbs \
	methods page
