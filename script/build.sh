#!/bin/sh
# Builds all servers, or those named, into output/bin/.
#
#     ./script/build.sh [NAME...]

. "$(dirname -- "$0")/common.sh"

wsbench build "$@"
