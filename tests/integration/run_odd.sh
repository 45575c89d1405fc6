#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whatever a program does to its file and its mappings, the replica has what was persisted.
. "$(dirname "$0")/run_lib.sh"
start_target

for mode in grow part protect fixed nodrain; do
	odd "$mode"
done
odd recreate 'recreate is another file'
