# SPDX-License-Identifier: BSD-3-Clause
# In a guest of fio.sh: run_kills.sh of fio, whose file is on ext4 with DAX. That fio runs at all says that it is: on a
# page cache its engine ends with EOPNOTSUPP.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/guest_lib.sh"
nvdimms
namespace 0 fsdax
fs "$DEVICE" /mnt/local ext4 dax
# Emulation is slow, and a loss of time is not looked for.
printf '%s\n' '[repl]' "connect-timeout = 60000" "op-timeout = 30000" "heartbeat-timeout = 20000" >/run/repl.conf
export REPL_CONFIG=/run/repl.conf ON_DAX=/mnt/local
unset PMEM_IS_PMEM_FORCE
bash "$here/../integration/run_kills.sh" fio
