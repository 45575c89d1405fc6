# SPDX-License-Identifier: BSD-3-Clause
# A thousand idle connections to the data port keep the rightful lanes out for less than 2 s.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile idle
check_victim
no_signal_deaths
