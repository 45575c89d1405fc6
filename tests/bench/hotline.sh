# SPDX-License-Identifier: BSD-3-Clause
# hotline.sh - the rotating counter against one location that is flushed again and
# again, on cache-line memory. The answer goes to $RESULTS/hotline.json; without
# RESULTS it is printed.
bench=$(cd "$(dirname "$0")" && pwd)
rounds=21 slice_ms=20
[ -z "${QUICK-}" ] || { rounds=5 slice_ms=5; }
answer=${RESULTS:-$(mktemp -d)}/hotline.json
timeout -k 5 60 "$BUILD/tests/bench/hotline" "$rounds" "$slice_ms" >"$answer" || exit 1
[ -n "${RESULTS-}" ] && exit 0
python3 "$bench/report.py" --part hotline "$answer"
rm -rf "$(dirname "$answer")"
