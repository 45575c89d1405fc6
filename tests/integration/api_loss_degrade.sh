# SPDX-License-Identifier: BSD-3-Clause
# When the target is stopped, killed or gone each call returns 0 by its deadline and stat says why it is degraded.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=1500
make_keys
start_serve
start_api
for how in stop kill serve; do
	lose_one $how degrade
done
stop_api
