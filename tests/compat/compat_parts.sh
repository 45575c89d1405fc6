# SPDX-License-Identifier: BSD-3-Clause
# A replica in several parts of the target is whole, and PMDK's tools read each part, with each option.
. "$(dirname "$0")/compat_lib.sh"
start_compat

# info PART: into $TMP/out, its checksum right.
info() {
	target_run pmempool info "$POOLS/many/$1" >"$TMP/out" 2>&1 ||
		fail "info of $1: $(cat "$TMP/out")"
	grep -q "Checksum.*OK" "$TMP/out" || fail "info of $1: $(cat "$TMP/out")"
}

uuid() {
	sed -n "s/^$1  *: *\\([0-9a-f-]*\\).*/\\1/p" "$TMP/out"
}

# try OPTION SIZE...: a set of such parts on the target, one of 16M here.
try() {
	option=$1
	shift
	lines=()
	[ -z "$option" ] || lines+=("OPTION $option")
	i=0
	for size in "$@"; do
		lines+=("$size $POOLS/many/p$i")
		i=$((i + 1))
	done
	target_set rem.set "${lines[@]}"
	{
		echo PMEMPOOLSET
		[ -z "$option" ] || echo "OPTION $option"
		echo "16M $TMP/part0"
		echo "REPLICA $T rem.set"
	} >"$TMP/local.set"
	make_pool
	filled=$(fill 100) || exit 1
	info p0
	if [ -z "$option" ]; then
		next=$(uuid "Next part UUID")
		info p1
		[ "$(uuid "UUID")" = "$next" ] || fail "p1 is not the part behind p0: $next"
	fi
	ctl info "$T/rem.set" | grep -q "^part  *many/p1, " || fail "$(ctl info "$T/rem.set")"
	ctl_fails 4 "headers of PMDK" restore "$T/rem.set" "$TMP/restored"
	ctl_fails 4 "headers of PMDK" verify "$TMP/part0" "$T/rem.set"
	ctl_fails 4 "headers of PMDK" sync "$TMP/part0" "$T/rem.set"
	lose_and_sync "$filled"
	pmdk pmempool rm -f "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
	[ ! -e "$POOLS/many" ] || fail "left: $(ls -A "$POOLS/many")"
}

try "" 4M 2M 11M
try SINGLEHDR 4M 2097152 10MiB
