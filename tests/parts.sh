#!/usr/bin/env bash
# Runs targets of the Makefile in order and prints at the end how long each took, and which failed.
# A part that fails does not stop the parts after it.
set -u
cd "$(dirname "$0")/.."
report=()
failed=0
for part in "$@"; do
    echo "== $part"
    begun=$SECONDS
    if make --no-print-directory "$part"; then
        result=passed
    else
        result=FAILED
        failed=1
    fi
    report+=("$(printf '%-12s %3d min %02d s  %s' "$part" $(((SECONDS - begun) / 60)) $(((SECONDS - begun) % 60)) "$result")")
done
echo "== time of each part"
printf '%s\n' "${report[@]}"
printf '%-12s %3d min %02d s\n' all $((SECONDS / 60)) $((SECONDS % 60))
exit "$failed"
