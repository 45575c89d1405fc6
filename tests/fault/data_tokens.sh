# SPDX-License-Identifier: BSD-3-Clause
# A wrong or used data token is refused at once, as is any after the last lane; lanes go on.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile tokens
check_victim
no_signal_deaths
