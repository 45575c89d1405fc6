# SPDX-License-Identifier: BSD-3-Clause
# A thousand idle connections to the data port cost the target no descriptor, and keep the rightful
# lanes out for less than 2 s.
. "$(dirname "$0")/fault.sh"
limit_repld -n 200
start_target
start_victim
hostile idle
check_victim
no_signal_deaths
