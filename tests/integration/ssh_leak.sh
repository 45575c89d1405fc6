# SPDX-License-Identifier: BSD-3-Clause
# A thousand channels opened and closed, or COUNT, and some that fail, leave no descriptor and no memory.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
count=${COUNT:-1000}
client open "$target" "$count" || fail "open and close"
export CHANNEL_CAT_EXPECT_ERRORS=1
"$CHANNEL_CAT" -i "$TMP/other_key" -k "$TMP/known_hosts" open "$target" $((count / 5)) || fail "wrong key"
"$CHANNEL_CAT" -i "$TMP/key" -k /dev/null open "$target" $((count / 5)) || fail "unknown host"
client open "$SERVE_USER@127.0.0.1:$(free_port)" $((count / 5)) || fail "no server"
# libssh ends before it has taken the connection over: '%q' stands for nothing.
"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/%q" open "$target" $((count / 5)) || fail "options that can't be applied"
