# SPDX-License-Identifier: BSD-3-Clause
# Appends by a hostile tail word or limit, and regions that are not there, change nothing and disturb nobody.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile appends
check_victim
no_signal_deaths
