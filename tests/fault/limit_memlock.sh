# SPDX-License-Identifier: BSD-3-Clause
# The tcp provider locks no memory: a memlock limit of 0 is enough.
. "$(dirname "$0")/fault.sh"
limit_repld -l 0
start_target
start_victim
hostile rma
check_victim
