# SPDX-License-Identifier: BSD-3-Clause
# Half a connection request and then silence keeps nobody waiting at the data port.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile half
check_victim
no_signal_deaths
