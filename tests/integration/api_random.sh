# SPDX-License-Identifier: BSD-3-Clause
# After each of many random operations on one lane the target's file holds the bytes, also with two replicas.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
seed=${API_SEED:-$RANDOM$RANDOM}
echo "seed $seed"
random() {
	timeout 20 "$BUILD/tests/integration/api_random" "$@" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" op-timeout=10000 || fail_by $? "seed $seed: $*"
}
random "$TMP/one" $((24 * MIB + 777)) "$seed" 1 3 target="$(pool one)" peek="$TMP/serve/pools/one"
equal "$TMP/one" "$TMP/serve/pools/one"
random "$TMP/two" $((24 * MIB + 777)) "$seed" 1 3 target="$(pool a)" target="$(pool b)" \
	peek="$TMP/serve/pools/a" peek="$TMP/serve/pools/b"
equal "$TMP/two" "$TMP/serve/pools/a"
equal "$TMP/two" "$TMP/serve/pools/b"
