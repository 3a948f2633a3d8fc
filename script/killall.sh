#!/bin/sh
# Stops every server that server.sh or servers.sh left running.
#
#     ./script/killall.sh [NAME...]

. "$(dirname -- "$0")/common.sh"

wsbench kill "$@"
