# SPDX-License-Identifier: BSD-3-Clause
# Whatever USER holds, a target is reached.
. "$(dirname "$0")/lib.sh"
start_target
letters=$(head -c 47 /dev/zero | tr '\0' x)

USER=$(printf 'jos\351') ctl list "$T" >"$TMP/out" 2>&1 || fail "Latin-1: $(cat "$TMP/out")"
USER=$letters$(printf '\303\251') ctl list "$T" >"$TMP/out" 2>&1 || fail "cut UTF-8: $(cat "$TMP/out")"
USER=$(printf 'a\nb') ctl list "$T" >"$TMP/out" 2>&1 || fail "a control character: $(cat "$TMP/out")"
