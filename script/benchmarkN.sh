#!/bin/sh
# Compares all servers over a matrix of connections and payloads, --rounds times.
#
#     ./script/benchmarkN.sh [NAME...] [-c=1000,5000] [-b=128,1024] [--rounds 3] [FLAGS]
#
# All flags: target/release/wsbench run --help

. "$(dirname -- "$0")/common.sh"

wsbench run --profile sweep "$@"
