# SPDX-License-Identifier: BSD-3-Clause
# For a pool in the page cache only the methods that end in a sync by the target can be had.
API_DISK=1
. "$(dirname "$0")/api_method.sh"
