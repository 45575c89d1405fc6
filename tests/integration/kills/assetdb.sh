# SPDX-License-Identifier: BSD-3-Clause
# PMDK's example "assetdb" on libpmemblk: a process checks out the next one of 499 assets, a line for each that ended.
stock "a shell"
A=$EXAMPLES/libpmemblk-dev/examples/assetdb
for name in load list checkout; do
	example asset_$name "$A/asset_$name.c" -lpmemblk
done
base=1

begin() {
	base=1
	truncate -s 24M "$pool"
	seq 500 >"$TMP/assets"
	"$TMP/asset_load" "$pool" "$TMP/assets" || fail "asset_load"
}

write_on() {
	run "$pool" killed sh -c 'i=$1; while [ $i -lt 500 ] && "$2" "$3" $i "user$i"; do echo "$i"; i=$((i + 1)); done' \
		sh $base "$TMP/asset_checkout" "$pool"
}

check() {
	pmempool_check "$1"
	told=$(tail -n 1 "$2")
	told=$((${told:-$((base - 1))} + 1))
	timeout 20 "$TMP/asset_list" "$1" >"$TMP/check.log" || lost "asset_list: $(cat "$TMP/check.log")"
	[ "$(grep -c '^Asset' "$TMP/check.log")" -eq 500 ] || lost "assets are lost"
	out=$(sed -n 's/^ *User: user//p' "$TMP/check.log")
	last=$(grep -c . <<<"$out")
	[ "$last" = 0 ] || [ "$out" = "$(seq $last)" ] || lost "not the first ones: $out"
	last=$((last + 1))
	[ "$last" -eq $told ] || [ "$last" -eq $((told + 1)) ] ||
		lost "$((told - 1)) were told, $last - 1 are out"
	base=$last
}
