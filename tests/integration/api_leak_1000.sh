# SPDX-License-Identifier: BSD-3-Clause
# A thousand opened and closed sets leave no descriptor, thread or byte.
API_LEAK_COUNT=1000
. "$(dirname "$0")/api_leak.sh"
