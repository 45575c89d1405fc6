# SPDX-License-Identifier: BSD-3-Clause
# liar.sh - on top of api_lib.sh: repld serve whose sessions go through liar.py; $T is the target.
#
#   lie LIE   of the sessions that begin from now on, in JSON; '' tells the truth
make_keys
make_serve_dir
export REPLD REPLD_CONF=$TMP/repld.conf LIES=$TMP/lies
printf '[repld]\npool-dir = %s\n' "$TMP/serve/pools" >"$REPLD_CONF"
cp "$(dirname "${BASH_SOURCE[0]}")/liar.py" "$TMP/liar.py"
printf '#!/bin/sh\nexec python3 %s\n' "$TMP/liar.py" >"$TMP/liar"
chmod 755 "$TMP/liar"
lie() {
	printf '[%s]\n' "$1" >"$LIES"
}
lie ''
start_serve_with "$TMP/liar"
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
