# SPDX-License-Identifier: BSD-3-Clause
# Transactions of libpmemobj; the lines are the counts of objects.
write_on() {
	run "$pool" killed "$FILL" steps "$pool" killed 100000
}

check() {
	count=$(tail -n 1 "$2")
	expect_count "$1" killed "${count:-0}"
}
