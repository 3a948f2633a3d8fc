#!/bin/sh
# Removes output/. The records in results/ stay unless --results is given.
#
#     ./script/clean.sh [--results] [--builds]

. "$(dirname -- "$0")/common.sh"

wsbench clean "$@"
