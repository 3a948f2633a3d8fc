#!/bin/sh
# Starts all servers and returns once they listen; killall.sh stops them.
#
#     ./script/servers.sh [FLAGS]
#
# All flags: target/release/wsbench serve --help

. "$(dirname -- "$0")/common.sh"

wsbench serve --detach --all "$@"
