#!/bin/sh
# Compares all servers: builds them, checks their answers, measures, reports.
#
#     ./script/benchmark.sh [NAME...] [FLAGS]
#
# With no arguments: every server of frameworks/, the default profile, tables on
# the terminal and in output/report/. Quick look: --profile smoke.
# All flags: target/release/wsbench run --help

. "$(dirname -- "$0")/common.sh"

wsbench run "$@"
