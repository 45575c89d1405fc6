# SPDX-License-Identifier: BSD-3-Clause
# A lost byte stays one when the second try passes; what a busy machine spoils does not, and both are told.
# Of the output of the ctest that is here.
set -u
here=$(cd "$(dirname "$0")" && pwd)
TMP=$(mktemp -d "${TMPDIR:-/tmp}/tries.XXXXXX") || exit 1
trap 'rm -rf "$TMP"' EXIT
cd "$TMP" || exit 1

die() {
	echo "$*" >&2
	cat log out >&2
	exit 1
}

# once NAME LABEL WHAT: a test that does WHAT the first time and passes then.
once() {
	echo "add_test($1 bash -c \"[ ! -e $TMP/$1 ] || exit 0; touch $TMP/$1; $3\")"
	echo "set_tests_properties($1 PROPERTIES LABELS $2 TIMEOUT 2)"
}

# try NAME LABEL WHAT: what tries.sh says of a run with that one between others; its status.
try() {
	{
		once before unit "exit 0"
		once "$@"
		once behind unit "exit 0"
	} >CTestTestfile.cmake
	rm -f before behind "$1"
	CTEST_OUTPUT_ON_FAILURE=1 ctest --repeat until-pass:2 -j 2 >log 2>&1 || die "$1: ctest has failed"
	bash "$here/../tries.sh" "$TMP" log >out
}

lib="TMPDIR=$TMP BUILD=/nonexistent; export TMPDIR BUILD; . $here/../integration/lib.sh;"

try x.late lab "$lib fail seed 4711: not well again" || die "what was late is final"
grep -q '^x.late: Failed' out && grep -q '^    FAILED: seed 4711: not well again' out || die "it is not told"
try x.lost lab "$lib lost seed 4712: differs" && die "lost bytes pass"
grep -q '^    LOST: seed 4712: differs' out || die "it is not told"
try x.sim sim "echo a seed; exit 1" && die "a search passes"
try x.slow sim "sleep 9" || die "a time limit is final"
try x.fuzz fuzz "exit 1" && die "a harness passes"
try x.crash unit 'kill -SEGV \$\$' && die "a crash passes"
try x.asan fault "$lib echo ==12==ERROR: AddressSanitizer: heap-use-after-free >&2; fail end" && die "a report passes"
report="echo ==12==ERROR: AddressSanitizer: heap-use-after-free"
try x.target lab "$lib $report >\$TMP/serve.log" && die "a report in a log passes"
grep -q "^    CRASHED: ==12==ERROR: AddressSanitizer: heap" out || die "it is not told"
try x.before lab "$lib $report >\$TMP/serve.log; aside \$TMP/serve.log" && die "a report in a log of before passes"
try x.below lab "$lib mkdir \$TMP/near; $report >\$TMP/near/serve.log" && die "a report in a log of a directory passes"
printf "#include <stdlib.h>\nint main(void) { char *p = malloc(3); free(p); return p[1]; }\n" |
	cc -fsanitize=address -w -x c -o wrong - ||
	die "no program with a sanitizer"
try x.again lab "export ASAN_OPTIONS=detect_leaks=0; $lib ./wrong 2>\$TMP/load.log; : >\$TMP/load.log" &&
	die "a report in a log that a second start truncates passes"
grep -q "^    CRASHED: .*ERROR: AddressSanitizer: heap-use-after-free" out || die "it is not told"
try x.said lab "$lib $report >\$TMP/api.log; emptied \$TMP/api.log" && die "a report in a log that was emptied passes"
try x.top fault "$lib { $report; seq 60; } >\$TMP/t0.log.now; fail end" && die "a report above what is shown passes"
grep -q "^    FAILED: end" out || die "it is not told"
try x.session lab "$lib echo session 7 ended by signal 6 >\$TMP/serve.log" && die "a crash of another process passes"
try x.stopped lab "$lib echo session 7 ended by signal 15 >\$TMP/serve.log" && [ ! -s out ] || die "an end in order is a crash"
try x.due lab "$lib CRASH_DUE=7.*signal.6; echo session 7 ended by signal 6 >\$TMP/serve.log" && [ ! -s out ] ||
	die "a crash that is due is told of"
# hostile() of a program that ends so.
printf '#!/bin/sh\necho FAILED: not as due\nexit "$ENDS"\n' >hostile
chmod 755 hostile
cat >ends <<END
TMPDIR=$TMP BUILD=/nonexistent
. $here/../fault/fault.sh
target=none
HOSTILE=$TMP/hostile
hostile stages
END
try x.late fault "ENDS=1 bash $TMP/ends" || die "what was late is final"
grep -q "^    FAILED: stages: FAILED: not as due" out || die "it is not told"
try x.bytes fault "ENDS=3 bash $TMP/ends" && die "bytes that a hostile initiator has found to differ pass"
grep -q "^    LOST: stages: FAILED: not as due" out || die "it is not told"
# An api_shell that tells with its end of a leak, or of a crash before.
mkdir -p build/tests/integration
cat >build/tests/integration/api_shell <<'END'
#!/bin/bash
while read -r word; do
	[ "$word" != crash ] || kill -SEGV $$
	echo REPL_OK 0
done
exit 23
END
chmod 755 build/tests/integration/api_shell
api="TMPDIR=$TMP API_DISK=1 BUILD=$TMP/build; export TMPDIR API_DISK BUILD; . $here/../integration/api_lib.sh;"
killed="ok begun; kill -KILL \$(api_child); wait \$api_pid"
crashed="echo crash >&\$API_IN; wait \$api_pid"
try x.leaks lab "$api start_api; start_api; $killed; true" || die "an end with a status is final"
grep -q "^    FAILED: api_shell ended with status 23" out || die "it is not told"
try x.crashes lab "$api start_api; $crashed; true" || die "an end with a status is final"
grep -q "^    FAILED: api_shell ended with status 139" out || die "it is not told"
try x.killed lab "$api start_api; $killed; true" && [ ! -s out ] || die "a shell that was killed is no fault"
try x.none lab "$lib equall a b 2>/dev/null; true" || die "a check that there is not is final"
grep -q "^    FAILED: no command .equall." out || die "it is not told"
try x.well unit "exit 0" && [ ! -s out ] || die "a run in which nothing has failed"
