# SPDX-License-Identifier: BSD-3-Clause
# The same for a pool in the page cache.
API_DISK=1
. "$(dirname "$0")/api_methods.sh"
