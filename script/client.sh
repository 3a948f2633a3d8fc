#!/bin/sh
# Loads one server that server.sh started, and prints what was measured.
#
#     ./script/client.sh -f=NAME [-c=10000] [-n=2000000] [-b=1024] [FLAGS]
#
# All flags: target/release/wsbench client --help

. "$(dirname -- "$0")/common.sh"

wsbench client "$@"
