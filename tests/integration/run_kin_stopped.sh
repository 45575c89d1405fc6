#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The process that has a pool open is stopped, and another one makes more durable than can be posted, far apart: when it
# goes on all of that is on the replica, and nothing more is said. Ten seconds are waited for it; a gigabyte goes along.
. "$(dirname "$0")/run_lib.sh"
start_target "heartbeat-timeout = 60000"
ODD_S=120 odd stopped "^[^"$'\n'"]*: NOT REPLICATED until that goes on\$"
