# SPDX-License-Identifier: BSD-3-Clause
# As log_writers.sh, for logs whose tails are written in turn.
KINDS="3 4"
. "$(dirname "$0")/log_writers.sh"
