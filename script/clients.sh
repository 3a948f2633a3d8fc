#!/bin/sh
# Loads every server that servers.sh started, one after the other.
#
#     ./script/clients.sh [-c=10000] [-n=2000000] [-b=1024] [FLAGS]
#
# All flags: target/release/wsbench client --help

. "$(dirname -- "$0")/common.sh"

wsbench client --all "$@"
