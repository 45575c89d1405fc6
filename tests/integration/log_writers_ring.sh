# SPDX-License-Identifier: BSD-3-Clause
# As log_writers.sh, for appends that go by deposits into a receive ring, replayed after a kill.
[ -w /dev/shm ] || exit 77
KINDS="2" METHOD=deposit
. "$(dirname "$0")/log_writers.sh"
