#!/bin/sh
# Removes output/. The records in results/ stay unless --results is given.
#
#     ./script/clean.sh [--results] [--builds]
#
# --results  removes results/ too: the records of every run
# --builds   removes target/ too: everything has to be compiled again

. "$(dirname -- "$0")/common.sh"

wsbench clean "$@"
