# SPDX-License-Identifier: BSD-3-Clause
# A message in the receive ring that is out of order, duplicated, torn or forged ends its lane, is in no replay and disturbs nobody.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile ring
check_victim
no_signal_deaths
[ "$(stat -c %s "$TMP/serve/pools/hostile.repl")" = 8192 ] || fail "the ring is still there"
