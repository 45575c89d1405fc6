# SPDX-License-Identifier: BSD-3-Clause
# A COMMIT that breaks a rule ends its lane with an error, and changes no byte.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile commits
check_victim
no_signal_deaths
