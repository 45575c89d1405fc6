# SPDX-License-Identifier: BSD-3-Clause
# Eight threads write at random on a lane each, and the target's file is the local one.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
seed=${API_SEED:-$RANDOM$RANDOM}
timeout 20 "$BUILD/tests/integration/api_random" "$TMP/p" $((64 * MIB)) "$seed" 8 4 \
	identity="$TMP/key" known-hosts="$TMP/known_hosts" op-timeout=15000 \
	target="$(pool p)" peek="$TMP/serve/pools/p" || fail_by $? "seed $seed"
equal "$TMP/p" "$TMP/serve/pools/p"
