#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Of processes that come of one another, any may have the pool open for all, and end at any moment: another one goes on.
. "$(dirname "$0")/run_lib.sh"
start_target

for mode in quiet killed spread executes; do
	odd $mode
done
