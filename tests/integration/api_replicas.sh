# SPDX-License-Identifier: BSD-3-Clause
# Three replicas on two targets, one of them behind OpenSSH's sshd, hold the same bytes and can each be read.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_sshd "Subsystem repl $REPLD session --config $TMP/sshd-repld.conf"
mkdir "$TMP/elsewhere"
{
	echo "[repld]"
	echo "pool-dir = $TMP/elsewhere"
} >"$TMP/sshd-repld.conf"
far=$USER_NAME@127.0.0.1:$SSHD_PORT/far
start_api
configure "$(pool a)" "$(pool b)" "$far"
ok map "$TMP/p" $((4 * MIB))
ok put 0 $((4 * MIB)) 1
ok open 1
ok replicas
[ "$TEXT" = 3 ] || fail "$TEXT replicas"
for i in 0 1 2; do
	ok compare $i
	same
done
ok put 1000 2000000 2
ok persist 0 1000 500000
ok flush 1 501000 100
ok flush 1 600000 1401000
ok drain 1
ok put 501100 98900 3
ok pair 2 501100 98000 599100 900
ok put 3999992 8 4
ok atomic8 3 3999992
for i in 0 1 2; do
	ok compare $i
	same
	ok stat $i
	is replication 0
	is drain 4
done
refused REPL_E_INVAL "replica 3 of 3" read 0 3 0 8
ok close
for file in "$TMP/serve/pools/a" "$TMP/serve/pools/b" "$TMP/elsewhere/far"; do
	equal "$TMP/p" "$file"
done

# Only sshd, with the local file from before.
ok put 0 $((4 * MIB)) 5
configure "$far"
ok open 0
ok compare 0
same
ok close
stop_api
equal "$TMP/p" "$TMP/elsewhere/far"
