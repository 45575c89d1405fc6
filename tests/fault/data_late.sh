# SPDX-License-Identifier: BSD-3-Clause
# A good data token is refused after deadline_ms; lanes that came in time go on.
. "$(dirname "$0")/fault.sh"
start_target "heartbeat = 200" "heartbeat-timeout = 2000"
start_victim
hostile late
check_victim
