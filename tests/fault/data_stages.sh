# SPDX-License-Identifier: BSD-3-Clause
# STAGEs that are malformed or out of place, and journals without room, change nothing and disturb nobody.
. "$(dirname "$0")/fault.sh"
start_target "journal-max = 1M"
start_victim
hostile stages
check_victim
no_signal_deaths
