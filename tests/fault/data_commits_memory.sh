# SPDX-License-Identifier: BSD-3-Clause
# The same where nothing is kept of messages: what comes without a checksum of its payload is taken.
[ -w /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/fault.sh"
start_target
start_victim
hostile commits
grep -q 'a BARE is taken' "$TMP/hostile.out" || fail "BAREs are not granted"
check_victim
no_signal_deaths
