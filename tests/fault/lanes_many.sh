# SPDX-License-Identifier: BSD-3-Clause
# Sixteen lanes are granted and work at once; with lanes-max = 64 sixty-four, under the default limits.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile lanes | grep -qx "16 lanes" || fail "$(cat "$TMP/hostile.out")"
check_victim
stop "$SERVE_PID"
start_target "lanes-max = 64"
hostile lanes | grep -qx "64 lanes" || fail "$(cat "$TMP/hostile.out")"
no_signal_deaths
