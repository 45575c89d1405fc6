# SPDX-License-Identifier: BSD-3-Clause
# The same of XFS, which says nothing of its directories any more.
KIND=xfs
. "$(dirname "$0")/api_disk_dies.sh"
