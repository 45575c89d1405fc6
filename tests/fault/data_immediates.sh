# SPDX-License-Identifier: BSD-3-Clause
# Immediates count with the COMMITs of their lane; a bad one ends the lane and nothing else.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile immediates
check_victim
no_signal_deaths
