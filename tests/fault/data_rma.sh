# SPDX-License-Identifier: BSD-3-Clause
# RMA outside the pool or without its key ends its lane, and changes no byte.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile rma
check_victim
no_signal_deaths
