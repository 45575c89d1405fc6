#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What failed at a first try, from what ctest said: each test with its reason and its seed, be the second one good or not.
#
# usage: tries.sh BUILD LOG     LOG: ctest's output with CTEST_OUTPUT_ON_FAILURE
#
# A second try is for what a busy machine can spoil. It makes good nothing in which a byte was lost or wrong: what
# lost() of integration/lib.sh has said, a crash and a sanitizer's report, in a test's output or in its files, and tests in
# which there is no clock (labels sim and fuzz) but for their time limit. Exit status 1 if there was such a one, even if the second try has passed.
set -uo pipefail

timeless=$(ctest --test-dir "$1" -N -L '^(sim|fuzz)$' | sed -n 's/^ *Test *#[0-9]*: //p' | tr '\n' ' ')
awk -v timeless=" $timeless" '
function final(why) {
	print "    no second try makes that good: " why
	bad = 1
}

# As in "12/700 Test  #34: unit.test_x ....***Failed    0.01 sec", of a later try without the first word.
/^ *([0-9]+\/[0-9]+ +)?Test +#[0-9]+: [^ ]+ \.\.\./ {
	name = $0
	sub(/^[^:]*: /, "", name)
	sub(/ .*/, "", name)
	verdict = $0
	failed = sub(/^.*\*\*\*/, "", verdict) && verdict !~ /^Skipped/
	lines = 0
	if (!failed)
		next
	print name ": " verdict
	if (verdict !~ /^Timeout/ && index(timeless, " " name " "))
		final("it knows no clock")
	else if (verdict ~ /^Exception/)
		final("it crashed")
	next
}

/^ +Start +[0-9]+: / || /^[0-9]+% tests passed/ { failed = 0 }

!failed { next }

/^LOST: / { print "    " $0; final("a byte is lost or wrong"); next }

/^CRASHED: / { print "    " $0; final("it crashed, or a sanitizer has found something"); next }

/(ERROR|SUMMARY): (Address|Leak|Thread|UndefinedBehavior)Sanitizer|WARNING: ThreadSanitizer|: runtime error: / {
	print "    " $0
	final("a sanitizer has found something")
	next
}

(/^FAILED: / || /[Ss]eed/) && lines++ < 5 { print "    " $0 }

END { exit bad }
' "$2"
