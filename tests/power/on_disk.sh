# SPDX-License-Identifier: BSD-3-Clause
# on_disk.sh - sourced before lib.sh: temporary files lie on a disk. What lies on tmpfs promises
# nothing beyond the machine's life, so a power cut may take it.
at_tmpfs() {
	[ "$(stat -f -c %T "$1")" = tmpfs ]
}

! at_tmpfs "${TMPDIR:-/tmp}" || export TMPDIR=/var/tmp
! at_tmpfs "${TMPDIR:-/tmp}" || { echo "neither /tmp nor /var/tmp is on a disk" && exit 77; }
