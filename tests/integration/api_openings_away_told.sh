# SPDX-License-Identifier: BSD-3-Clause
# So when it was told a generation beside the one that it is known to have, and its answer did not come.
TOLD=1
. "$(dirname "$0")/api_openings_away.sh"
