#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Install the Debian 12 packages that the project needs and that are missing.
#
#   packaging/install-deps.sh build    what compiling and running take
#   packaging/install-deps.sh vm       what the tests that run in a guest take
#   packaging/install-deps.sh test     all that and what the other tests take
#
# Asks for rights only when something is missing. Exit status 0 when all is there.
set -euo pipefail

build_packages=(
	cmake ninja-build pkg-config gcc libc6-dev
	libfabric-dev libpmem2-dev libssh-dev libinih-dev libjson-c-dev libxxhash-dev
	openssh-client
)
test_packages=(
	libcmocka-dev
	clang clang-format g++ binutils mandoc strace
	openssh-server iproute2 procps systemd
	pmdk-tools libpmemobj-dev libpmemlog-dev libpmemblk-dev fio btrfs-progs
)
# A guest is a PC, whose kernel and file tree are this machine's kind.
vm_packages=(
	qemu-system-x86 busybox-static kmod cpio xz-utils python3
	ndctl rdma-core ibverbs-utils ibverbs-providers rdmacm-utils libfabric-bin
	iproute2 e2fsprogs xfsprogs pmdk-tools fio
)
[ "$(uname -m)" = x86_64 ] || vm_packages=()

die()
{
	printf 'install-deps: %s\n' "$*" >&2
	exit 1
}

is_installed()
{
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

is_known()
{
	[ -n "$(apt-cache policy "$1" 2>/dev/null | sed -n '/Candidate: (none)/d; /Candidate:/p')" ]
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
	fi
}

apt_install()
{
	as_root apt-get install -y -q --no-install-recommends \
		-o DPkg::Lock::Timeout=300 "$@" </dev/null
}

case "${1-}" in
build) wanted=("${build_packages[@]}") ;;
vm) wanted=("${vm_packages[@]}") ;;
test) wanted=("${build_packages[@]}" "${test_packages[@]}" "${vm_packages[@]}") ;;
*)
	printf 'usage: %s build|vm|test\n' "$0" >&2
	exit 2
	;;
esac

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
	die "this is not Debian (no apt-get); install by hand: ${wanted[*]}"

missing=()
for package in "${wanted[@]}"; do
	is_installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

# Other releases name or version these packages differently.
id=$(. /etc/os-release && printf '%s %s' "${ID-unknown}" "${VERSION_ID-}")
case $id in
'debian 12'*) ;;
*) die "made for Debian 12, this is '$id'; install by hand: ${missing[*]}" ;;
esac

if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null ||
		die "not root and no sudo; as root run: apt-get install ${missing[*]}"
	# Ask for a password here, where a person can see for what.
	if ! sudo -n true 2>/dev/null; then
		{ : </dev/tty; } 2>/dev/null && sudo -v -p "install-deps: password of %p, to install ${missing[*]}: " ||
			die "sudo needs a password; as root run: apt-get install ${missing[*]}"
	fi
fi

printf 'install-deps: installing %s\n' "${missing[*]}"
export DEBIAN_FRONTEND=noninteractive

fresh=false
for package in "${missing[@]}"; do
	is_known "$package" && continue
	as_root apt-get update -q
	fresh=true
	break
done
if ! apt_install "${missing[@]}"; then
	# Lists that are old name versions which the mirror has no more.
	"$fresh" && die "apt-get could not install: ${missing[*]}"
	as_root apt-get update -q
	apt_install "${missing[@]}" || die "apt-get could not install: ${missing[*]}"
fi

# The tests start their own sshd; installing it should not open the machine.
if [ -d /run/systemd/system ] && [[ " ${missing[*]} " == *' openssh-server '* ]]; then
	printf 'install-deps: switching off ssh.service, which the tests do not need\n'
	as_root systemctl disable --now -q ssh.service || true
fi

for package in "${missing[@]}"; do
	is_installed "$package" || die "apt-get went through but '$package' is not installed"
done
