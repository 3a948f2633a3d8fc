#!/bin/sh
# Makes the report of the latest run, or of the one named, from its records.
#
#     ./script/report.sh [RUN] [FLAGS]
#
# All flags: target/release/wsbench report --help

. "$(dirname -- "$0")/common.sh"

wsbench report "$@"
