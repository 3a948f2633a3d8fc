#!/bin/sh
# Compares all servers at 1,000,000 connections.
#
#     ./script/1m_conns_benchmark.sh [NAME...] [FLAGS]
#
# Where a process may not open so many files, it starts as many as it takes. Where
# another limit of the machine refuses, it says which one, and the command that
# lifts it. All flags: target/release/wsbench run --help

. "$(dirname -- "$0")/common.sh"

wsbench run --profile 1m "$@"
