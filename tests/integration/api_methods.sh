# SPDX-License-Identifier: BSD-3-Clause
# By each method that is correct for the pool, single ranges and pairs from several lanes are on the target when the call returns.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
seed=${API_SEED:-$RANDOM$RANDOM}
echo "seed $seed"
methods="message general-purpose write-imm"
[ "$(stat -f -c %T "$TMP/serve/pools")" != tmpfs ] ||
	methods="$methods appliance completion write-imm-read"
for method in $methods; do
	echo "$method"
	timeout 20 "$BUILD/tests/integration/api_random" "$TMP/$method" $((12 * MIB)) "$seed" 3 1 \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" op-timeout=10000 \
		method="$method" target="$(pool "$method")" peek="$TMP/serve/pools/$method" ||
		fail_by $? "seed $seed: $method"
	equal "$TMP/$method" "$TMP/serve/pools/$method"
done
