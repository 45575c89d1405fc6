# SPDX-License-Identifier: BSD-3-Clause
# Neither COMMIT nor RMA changes a pool that is open for reading.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile readonly
check_victim
no_signal_deaths
