# SPDX-License-Identifier: BSD-3-Clause
# A pool of size 0, or larger than the disk is refused and leaves nothing behind. So is one that asks for what
# only sets have.
. "$(dirname "$0")/fault.sh"
start_target
start_victim

# Lines of what is asked, the status and a pattern that are due.
{
	free=$(df --output=avail -B 4096 "$TMP" | tail -n 1)
	echo "0 inval 'size'"
	echo "-4096 inval 'size'"
	echo "1e400 inval 'size'"
	echo "\"4096\" inval 'size'"
	echo "18446744073709551616 inval 'size'"
	echo "9223372036854771712 nospc 9223372036854771712 bytes are wanted"
	echo "$(((free + 1000000) * 4096)) nospc are free: choose a smaller size or make room"
} >"$TMP/sizes"
{
	hello
	while read -r size _; do
		request pool.create "{\"name\":\"sized\",\"size\":$size}"
	done <"$TMP/sizes"
	request pool.create '{"name":"sized","size":4096,"filling":true}'
} | raw_session | tail -n +2 >"$TMP/answers"
while read -r size status pattern; do
	IFS= read -r answer <&3 || fail "no answer to size $size"
	echo "$answer" >"$TMP/out"
	expect_answer "\"error\":.*$pattern.*\"status\":\"$status\"" "size $size"
done <"$TMP/sizes" 3<"$TMP/answers"
tail -n 1 "$TMP/answers" >"$TMP/out"
expect_answer "\"error\":.*only sets.*\"status\":\"inval\"" "a plain pool that is made for a copy"
[ -z "$(find "$TMP/serve/pools" -name 'sized*' -o -name '.tmp-*')" ] ||
	fail "left $(ls -a "$TMP/serve/pools")"
check_victim
