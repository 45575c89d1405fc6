#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every C file is laid out as .clang-format says, no test is content with another try where bytes differ, and the
# library does not ask /proc/self, which is empty where main() has left.
#
# Versions of clang-format differ in what they make of it: 14, of Debian 12,
# decides. Exit status 77, a skipped test, where it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."

if grep -rnE '(^|[^_[:alnum:]-])(cmp|ctl verify|pmempool check) .*\|\| fail' tests --include='*.sh' ||
	grep -rnE '\|\| fail .*(were acknowledged|were told|in place of|wrote after)' tests --include='*.sh'; then
	printf 'say lost in place of fail: tests/integration/lib.sh\n'
	exit 1
fi

if grep -rnE '"/proc/self/(maps|fd|fdinfo|status|mountinfo|exe)|process_vm_readv\(getpid' librepl --include='*.[ch]'; then
	printf 'it tells nothing where main() has left: librepl/common/procself.h\n'
	exit 1
fi

# What these compare they tell by their exit status. A call may go on in the next line.
if ! find tests -name '*.sh' -exec awk '
{ call = call " " $0 }
/(\\|\|\||&&)$/ { sub(/\\$/, "", call); next }
call ~ /(api_random|api_shares|fork_parent|log_again|fault\/hostile|API_RANDOM|HOSTILE)" .*\|\|[[:space:]]+(fail|lost) / { print FILENAME ":" FNR ":" call; bad = 1 }
{ call = "" }
END { exit bad }' {} +; then
	printf 'bytes that differ may be excused, or what is late not: say || fail_by $? ...: tests/integration/lib.sh\n'
	exit 1
fi

# The end of a pipeline is a process of its own, and so ends there and not the test.
if grep -rnE '(^|[^|\\])\| *(try|ok|refused|same|equal|whole_again|fail|lost|fail_by|ctl_fails|expect_[a-z]+)( |$)' tests --include='*.sh'; then
	printf 'it can not fail at the end of a pipeline: give it a file\n'
	exit 1
fi

# What can't be had here is no success.
if grep -rnE '(\|\||&&) exit 0' tests/{integration,fault,compat,lab} --include='*.sh' | grep -v /lib.sh:; then
	printf 'a part that was not run passes: left_out TEXT, then exit: tests/integration/lib.sh\n'
	exit 1
fi

# A line that ends in a backslash may have its || in the next one.
if grep -rnE '^[[:space:]]*([A-Z_]+=[^ ]* )?wait_for [^|&]*[^|&\\]$' tests --include='*.sh'; then
	printf 'it may have waited in vain: wait_for ... || fail\n'
	exit 1
fi

# Success of these is no answer: they say "same" or "differs". What differs is not waited for, either.
if ! find tests -name '*.sh' -exec awk '
FNR == 1 { due = 0 }
due && !/^[[:space:]]*same$|TEXT/ { print at; bad = 1 }
{ due = 0 }
/(^|[^_[:alnum:]])ok (compare|read) / { due = 1; at = FILENAME ":" FNR ":" $0 }
/(^|[^_[:alnum:]])api (compare|read) .*&&/ { print FILENAME ":" FNR ":" $0; bad = 1 }
END { exit bad }' {} +; then
	printf 'a difference passes: same comes behind ok compare, or whole_again is called: tests/integration/api_lib.sh\n'
	exit 1
fi

case $(clang-format --version 2>/dev/null) in
*' version 14.'*) ;;
*)
	printf 'skipped: no clang-format 14\n'
	exit 77
	;;
esac

if ! find librepl repld replctl tests -name '*.[ch]' -print0 |
	xargs -0 -n 32 -P "$(nproc)" clang-format --dry-run -Werror; then
	printf 'run: find librepl repld replctl tests -name "*.[ch]" | xargs clang-format -i\n'
	exit 1
fi
