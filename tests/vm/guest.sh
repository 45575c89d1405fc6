#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
here=$(cd "$(dirname "$0")" && pwd)

usage()
{
	cat <<'END'
usage: guest.sh [OPTION...] -- COMMAND [ARGUMENT...]

Boot a throw-away machine (QEMU without KVM, Debian's kernel) whose file tree is
this machine's, read-only with a tmpfs above it, so that what was built here is
there. Run COMMAND in it as root, in this directory, without standard input;
show its output; power off. About 4 seconds.

  --timeout S           end the guest after so many seconds (120)
  --mem MB, --cpus N    its size (1024, 1: one is as fast as two)
  --pmem FILE[:SIZE]    an NVDIMM whose content is FILE, made if it is not there
                        (256M); which region is which: guest_lib.sh
  --persistence WHAT    what the platform says of them: mem-ctrl (ADR), cpu
                        (eADR) or none (nothing)
  --disk FILE[:SIZE]    a virtio disk, likewise (256M): /dev/vda, ...
  --net NETDEV          a network device, for QEMU's -netdev, without id:
                        user,hostfwd=..., dgram,... or stream,...: eth0, ...
  --id N                1 to 255, tells guests on one network apart (1)
  --bind DIR            DIR is shared for writing, at the same path
  --pidfile FILE        the process id of QEMU: to kill it is to cut the power
  --console FILE        keep the kernel's messages

/dev/shm and /run are the guest's own, and /proc/kallsyms is empty. In the guest modprobe loads the
guest's own modules. tests/vm/guest_lib.sh has functions for scripts that run there.

Exit status: COMMAND's own; 124 the time limit; 125 the guest ended before
COMMAND did (a panic, or QEMU was killed); 77 no guest can be had here, with the
reason; 2 usage. In the last four cases a line "guest.sh: ..." says so.
END
}

say()
{
	printf 'guest.sh: %s\n' "$*" >&2
}

bad_usage()
{
	say "$*; see guest.sh --help"
	exit 2
}

timeout=120
mem=1024
cpus=1
persistence=mem-ctrl
id=1
pidfile=
console=
pmems=() disks=() nets=() binds=()
while [ $# -gt 0 ]; do
	option=$1
	shift
	case $option in
	--) break ;;
	--help)
		usage
		exit 0
		;;
	esac
	[ $# -gt 0 ] || bad_usage "$option: no value"
	case $option in
	--timeout) timeout=$1 ;;
	--mem) mem=$1 ;;
	--cpus) cpus=$1 ;;
	--pmem) pmems+=("$1") ;;
	--persistence) persistence=$1 ;;
	--disk) disks+=("$1") ;;
	--net) nets+=("$1") ;;
	--id) id=$1 ;;
	--bind) binds+=("$1") ;;
	--pidfile) pidfile=$1 ;;
	--console) console=$1 ;;
	*) bad_usage "no option '$option'" ;;
	esac
	shift
done
[ $# -gt 0 ] || bad_usage "no command"
for number in "$timeout" "$mem" "$cpus" "$id"; do
	[[ $number =~ ^[1-9][0-9]*$ ]] || bad_usage "'$number' is not a positive number"
done

kernel=$("$here/kernel.sh") || exit
job=$(mktemp -d "${TMPDIR:-/tmp}/guest.XXXXXX") || exit 2
qemu_pid=
cleanup()
{
	[ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null
	rm -rf "$job"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# What the guest runs. Its output goes through a pipe, since the port can be opened only once.
{
	printf 'guest_main()\n{\n'
	printf 'hostname guest; ip link set lo up\n'
	printf 'mkdir -p /lib/modules && mount --bind %q /lib/modules\n' "$kernel/modules"
	printf 'modprobe -qab $(cat /sys/bus/virtio/devices/*/modalias)\n'
	# What libraries of libfabric's look for there takes longer in emulation than all else.
	printf 'mount --bind /dev/null /proc/kallsyms\n'
	for i in "${!binds[@]}"; do
		printf 'mkdir -p %q && mount -t 9p -o %s bind%d %q || exit\n' "${binds[i]}" \
			trans=virtio,version=9p2000.L,msize=262144,cache=mmap "$i" "${binds[i]}"
	done
	printf 'cd %q || exit\n' "$PWD"
	printf '(exec'
	printf ' %q' "$@"
	printf ')\n}\n'
	# The system's own programs first: what a user's path has in their place may be slow wrappers.
	printf 'export HOME=/root TERM=dumb PATH=%q\n' \
		"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
	printf 'port=$(grep -l "^out$" /sys/class/virtio-ports/*/name | cut -d / -f 5)\n'
	printf 'guest_main </dev/null 2>&1 | cat >"/dev/$port"\n'
	printf 'echo "${PIPESTATUS[0]}" >/run/guest/status.new\n'
	printf 'mv /run/guest/status.new /run/guest/status\n'
	printf 'sync; busybox poweroff -f\n'
} >"$job/start"

machine=q35,accel=tcg,usb=off,smbus=off,sata=off,vmport=off
memory=${mem}M
if [ ${#pmems[@]} -gt 0 ]; then
	machine+=,nvdimm=on
	memory+=,slots=8,maxmem=64G
	case $persistence in
	mem-ctrl | cpu) machine+=,nvdimm-persistence=$persistence ;;
	none) ;;
	*) bad_usage "--persistence is mem-ctrl, cpu or none" ;;
	esac
fi
append='console=ttyS0 quiet nokaslr mitigations=off tsc=reliable no_timer_check panic=-1'
append+=' random.trust_cpu=on rcupdate.rcu_expedited=1 net.ifnames=0'
# Programs that are always at the same addresses need not be translated again.
append+=' norandmaps init_on_alloc=0 hardened_usercopy=off lsm= audit=0 nowatchdog'
append+=" tsc_early_khz=$("$here/tsc_khz.py")" || exit 2
# What programs look for, and nothing that emulation is slow at: AVX and its state, five levels of page
# tables, the processor's checks of accesses.
cpu=qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+movbe,+bmi1,+bmi2,+erms,+aes,+pclmulqdq,+rdrand,+fsgsbase
cpu+=,+clflushopt,+clwb
qemu=(qemu-system-x86_64 -machine "$machine" -cpu "$cpu" -smp "$cpus" -m "$memory"
	-nodefaults -no-user-config -display none -monitor none -no-reboot -bios qboot.rom
	-kernel "$kernel/vmlinux" -initrd "$kernel/initrd" -append "$append"
	-serial "file:$job/console" -pidfile "$job/pid"
	-device virtio-serial-pci -chardev stdio,id=out,signal=off
	-device virtserialport,chardev=out,name=out)

# share TAG PATH [OPTIONS]
share()
{
	qemu+=(-fsdev "local,id=$1,path=$2,security_model=none,multidevs=remap${3-}"
		-device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}
share root / ,readonly=on
share job "$job"
for i in "${!binds[@]}"; do
	share "bind$i" "${binds[i]}"
done

# backing FILE[:SIZE]: sets file; it is made if it is not there.
backing()
{
	local size=256M

	file=$1
	case $1 in
	*:*)
		file=${1%:*}
		size=${1##*:}
		;;
	esac
	[ -e "$file" ] || truncate -s "$size" "$file" || exit 2
}
for i in "${!pmems[@]}"; do
	backing "${pmems[i]}"
	qemu+=(-object "memory-backend-file,id=pmem$i,share=on,mem-path=$file,size=$(stat -Lc %s "$file")"
		-device "nvdimm,id=nvdimm$i,memdev=pmem$i")
done
for i in "${!disks[@]}"; do
	backing "${disks[i]}"
	qemu+=(-drive "if=none,id=disk$i,format=raw,cache=writeback,file=$file"
		-device "virtio-blk-pci,drive=disk$i")
done
for i in "${!nets[@]}"; do
	qemu+=(-netdev "${nets[i]},id=net$i" -device
		"virtio-net-pci,netdev=net$i,romfile=,mac=$(printf '52:54:00:00:%02x:%02x' "$id" "$i")")
done

# At the end of its input QEMU would hang up the port.
mkfifo "$job/input" && exec 8<>"$job/input" || exit 2
timeout -k 5 "$timeout" "${qemu[@]}" <&8 8>&- 2>"$job/errors" &
qemu_pid=$!
if [ -n "$pidfile" ]; then
	until [ -s "$job/pid" ] || ! kill -0 "$qemu_pid" 2>/dev/null; do
		sleep 0.05
	done
	cat "$job/pid" >"$pidfile" 2>/dev/null
fi
wait "$qemu_pid"
ended=$?
qemu_pid=
[ -z "$console" ] || cp "$job/console" "$console"
[ ! -s "$job/status" ] || exit "$(cat "$job/status")"
if [ "$ended" -eq 124 ]; then
	say "the guest did not end within $timeout seconds"
	status=124
else
	say "the guest ended before its command did (QEMU's exit status $ended)"
	status=125
fi
tail -n 20 "$job/errors" "$job/console" >&2
exit $status
