# SPDX-License-Identifier: BSD-3-Clause
# provider.sh - libfabric's tcp provider by itself beside bare TCP. The answer goes to
# $RESULTS/provider.json; without RESULTS it is printed.
bench=$(cd "$(dirname "$0")" && pwd)
rounds=15
[ -z "${QUICK-}" ] || rounds=3
answer=${RESULTS:-$(mktemp -d)}/provider.json
timeout -k 5 100 "$BUILD/tests/bench/provider" "$rounds" >"$answer" || exit 1
[ -n "${RESULTS-}" ] && exit 0
python3 "$bench/report.py" --part provider "$answer"
rm -rf "$(dirname "$answer")"
