# SPDX-License-Identifier: BSD-3-Clause
# Bytes that are no connection request do not reach a lane of the data port and harm none.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile garbage
check_victim
no_signal_deaths
