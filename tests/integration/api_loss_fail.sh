# SPDX-License-Identifier: BSD-3-Clause
# With on-loss = fail each call says REPL_E_LOST by its deadline when the target is stopped, killed or gone.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=1500
make_keys
start_serve
start_api
for how in stop kill serve; do
	lose_one $how fail
done
stop_api
