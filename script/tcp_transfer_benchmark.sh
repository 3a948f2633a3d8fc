#!/bin/sh
# Compares where a bulk echo server may keep its buffers: builds the servers, examines
# them, measures, reports.
#
#     ./script/tcp_transfer_benchmark.sh [NAME...] [FLAGS]
#
# With no arguments: four strategies, the profile transfer, tables on the terminal and
# in output/report/. All strategies and levels: --profile transfer-full. On one CPU: --server-cpus 0.
# All flags: target/release/wsbench run --help

. "$(dirname -- "$0")/common.sh"

wsbench run --profile transfer "$@"
