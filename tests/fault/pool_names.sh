# SPDX-License-Identifier: BSD-3-Clause
# No pool name leads out of the pool directory or to what is no pool; a refusal changes nothing.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
pools=$TMP/serve/pools
mkdir "$TMP/outside" "$pools/directory"
echo precious >"$TMP/outside/file"
chmod -R 777 "$TMP/outside"
ln -s "$TMP/outside" "$pools/link"
ln -s "$TMP/outside/file" "$pools/linkfile"
ln -s /dev/zero "$pools/zero"
mkfifo "$pools/fifo"
long=$(head -c 4096 /dev/zero | tr '\0' n)
snapshot() {
	(cd "$TMP/outside" && find . -printf '%p %y %s\n' && cat file && cd "$pools" &&
		find . -name 'victim*' -o -name .repld -prune -o -printf '%p %y %s\n' | sort)
}
snapshot >"$TMP/before"

# Lines of a name in JSON and the status that is due for whatever is asked about it.
cat >"$TMP/names" <<EOF
.. inval
../outside/file inval
a/../../outside/file inval
/etc/passwd inval
$pools/victim.pool inval
. inval
a//b inval
.repld/x inval
victim.pool.repl inval
a\u0000b inval
a\nb inval
$long inval
link/file refused|not-found
link/new refused|not-found
linkfile refused|not-found|exists
zero refused|not-found|exists
fifo refused|not-found|exists
directory refused|not-found|exists
 inval
EOF
{
	hello
	while IFS=' ' read -r name due; do
		[ -n "$due" ] || { due=$name && name=; }
		for request in create info open remove; do
			request pool.$request "{\"name\":\"$name\",\"size\":4096,\"mode\":\"write\"}"
			echo "$due pool.$request of '$(printf %s "$name" | head -c 40)'" >&3
		done
	done <"$TMP/names"
} 3>"$TMP/due" | raw_session | tail -n +2 >"$TMP/answers"
while read -r due what; do
	IFS= read -r answer <&3 || fail "no answer to $what"
	echo "$answer" >"$TMP/out"
	expect_answer "\"error\":.*\"status\":\"($due)\"" "$what"
done <"$TMP/due" 3<"$TMP/answers"
[ "$(wc -l <"$TMP/due")" -eq 76 ] || fail "not all was asked"
snapshot >"$TMP/after"
cmp -s "$TMP/before" "$TMP/after" || lost "changed: $(diff "$TMP/before" "$TMP/after")"
check_victim
