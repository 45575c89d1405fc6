# SPDX-License-Identifier: BSD-3-Clause
# target.sh CLASS - replctl bench against repld serve, whose pool directory is
# below TMPDIR; the answer goes to $RESULTS/CLASS.json. Used by run.sh.
. "$(dirname "$0")/../integration/lib.sh"
class=$1

make_keys
start_serve
# shellcheck disable=SC2086 # QUICK is an option or nothing
"$BUILD/replctl" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" --json bench $QUICK \
	"$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$RESULTS/$class.json" || fail "bench of class $class"
grep -q "\"class\": \"$class\"" "$RESULTS/$class.json" ||
	fail "a pool below $TMPDIR is not of class $class"
