#!/bin/sh
# Starts one server and returns once it listens; killall.sh stops it.
#
#     ./script/server.sh NAME [FLAGS]
#
# All flags: target/release/wsbench serve --help

. "$(dirname -- "$0")/common.sh"

wsbench serve --detach "$@"
