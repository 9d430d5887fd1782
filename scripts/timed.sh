#!/usr/bin/env bash
# The shell of `make` in continuous integration: says how long each command took, if more than a few seconds.
began=$EPOCHREALTIME
bash "$@"
code=$?
took=$((${EPOCHREALTIME%.*} - ${began%.*}))
((took < 5)) || echo "# $took s: ${*: -1}" | cut -c -160 >&2
exit "$code"
