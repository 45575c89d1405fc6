# SPDX-License-Identifier: BSD-3-Clause
# So with a pool that is smaller than a page.
SIZE=1000
. "$(dirname "$0")/api_openings_away.sh"
