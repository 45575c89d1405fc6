#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a program syncs at once may be more than the link carries in op-timeout: no replica is lost by that.
. "$(dirname "$0")/run_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far
T=$FAR_TARGET
# 4 MB a second, of which a drain has 3.75 seconds by default.
tc qdisc add dev "rf$$" root tbf rate 32mbit burst 64kb latency 400ms 2>"$TMP/tc.log" || exit 77
odd large
