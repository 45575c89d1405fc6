# SPDX-License-Identifier: BSD-3-Clause
# An initiator that sends without end and takes no ACK harms only itself.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile flood
check_victim
no_signal_deaths
