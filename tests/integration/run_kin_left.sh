#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes end though signal handlers write meanwhile.
. "$(dirname "$0")/run_lib.sh"
start_target

odd alarmed
