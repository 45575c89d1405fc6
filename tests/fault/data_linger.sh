# SPDX-License-Identifier: BSD-3-Clause
# What connections from before the data port closed say after it harms nobody.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile linger
check_victim
no_signal_deaths
