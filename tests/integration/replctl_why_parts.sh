# SPDX-License-Identifier: BSD-3-Clause
# A pool set whose lines have changed places or can't be read, or one of whose parts was moved away, is whole as soon as that is put back: why
# says so before it says anything of making it anew.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
P=serve/pools
head -c 4M /dev/urandom >pool
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M a\n2M b\n' >$P/s
ctl sync pool "$T/s" >out 2>&1 || fail "sync: $(cat out)"

# told WHAT NAMED: the evidence names it.
told() {
	ctl why "$T/s" >out 2>&1 || fail "$1: why: $(cat out)"
	grep -q "^reason *damaged:" out && grep -q "^evidence.*$2" out || fail "$1, which is not told: $(cat out)"
	next=$(grep "^next" out)
	case ${next%%remove*} in
	*"put back"*) ;;
	*) lost "$1: a pool that is whole is to be removed: $next" ;;
	esac
}
whole() {
	ctl info "$T/s" >out 2>&1 && grep -q "up-to-date" out && cat $P/a $P/b | cmp -s - pool ||
		lost "$1: put back it is not what it was: $(cat out)"
}

printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M b\n2M a\n' >$P/s
told "lines that have changed places" "its set file are in another order"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M a\n2M b\n' >$P/s
whole "lines that have changed places"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M a\n2M b c\n' >$P/s
told "a line with a word too many" "line 4: 'c' is one word too many"
# Nor do bytes of it that no message may carry hide the pools beside it.
ctl create "$T/other" --size 1M >out 2>&1 || fail "create: $(cat out)"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M a\n2M b \377\n' >$P/s
told "a byte of no character" "line 4: '?' is one word too many"
ctl list "$T" >out 2>&1 || fail "list: $(cat out)"
grep -q "^other .*up-to-date" out || fail "another pool is not listed: $(cat out)"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M a\n2M b\n' >$P/s
whole "a line with a word too many"
mv $P/b $P/away
told "a part that was moved away" "its part 'b' is missing"
mv $P/away $P/b
whole "a part that was moved away"
