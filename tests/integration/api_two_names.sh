# SPDX-License-Identifier: BSD-3-Clause
# Two targets that are one pool by two names of its host are refused, and the text says that it is this
# program itself that holds the pool. By one of them it opens.
. "$(dirname "$0")/api_lib.sh"
start_target
echo "[localhost]:$SERVE_PORT $(cut -d ' ' -f 1,2 "$TMP/serve_host_key.pub")" >>"$TMP/known_hosts"
other=$SERVE_USER@localhost:$SERVE_PORT
self="is open for writing by .* pid [0-9]+, which is what this program is called: is another of its targets the same pool"
start_api
configure "$T/p" "$other/p"
ok map "$TMP/p" $MIB
refused REPL_E_BUSY "^$other/p: pool 'p' $self" open 1
configure "$T/p"
ok map "$TMP/p" $MIB
ok open 1
ok close
configure "$other/p" "$T/p"
ok map "$TMP/p" $MIB
refused REPL_E_BUSY "$self" open 1
stop_api
