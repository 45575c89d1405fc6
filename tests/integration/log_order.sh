# SPDX-License-Identifier: BSD-3-Clause
# A log stores no second copy of its header before the first one is flushed, and no header of a new log before
# what it is to be believed with: a replica that comes back meanwhile never gets both half stored.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve
"$BUILD/tests/integration/log_order" "$TMP/p" "$SERVE_USER@127.0.0.1:$SERVE_PORT/p" identity="$TMP/key" \
	known-hosts="$TMP/known_hosts" lanes=1 || lost "something is stored too early"
