#!/bin/sh
# Compares the ways to copy bytes between two sockets: builds the relays, examines
# them, measures, reports.
#
#     ./script/tcp_relay_benchmark.sh [NAME...] [FLAGS]
#
# With no arguments: every relay of tcp/, the profile relay, tables on the terminal and
# in output/report/. All sizes and loads: --profile relay-full.
# All flags: target/release/wsbench run --help

. "$(dirname -- "$0")/common.sh"

wsbench run --profile relay "$@"
