# SPDX-License-Identifier: BSD-3-Clause
# What goes by deposits from several lanes is read back as written, and is in the replica's file after closing, which leaves no ring.
. "$(dirname "$0")/api_lib.sh"
[ "$(stat -f -c %T "${TMPDIR-/tmp}")" = tmpfs ] || exit 77
make_keys
start_serve
seed=${API_SEED:-$RANDOM$RANDOM}
echo "seed $seed"
for method in deposit deposit-completion; do
	echo "$method"
	timeout 20 "$BUILD/tests/integration/api_random" "$TMP/$method" $((12 * MIB)) "$seed" 3 1 \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" op-timeout=10000 \
		method="$method" target="$(pool "$method")" || fail_by $? "seed $seed: $method"
	equal "$TMP/$method" "$TMP/serve/pools/$method"
	[ "$(stat -c %s "$TMP/serve/pools/$method.repl")" = 8192 ] || fail "the ring is still there"
done
