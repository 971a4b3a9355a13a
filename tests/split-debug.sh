#!/usr/bin/env bash
# Moves symbols and debug information of programs into files NAME.debug beside them, where debuggers look for them.
# OBJCOPY is the one for the programs' machine.
set -eu
objcopy=${OBJCOPY:-objcopy}
for program in "$@"; do
    # The program is stripped already. Cargo's own copy is a hard link to the same file, and `mv` leaves it as it is.
    if ! readelf --sections --wide "$program" | grep -q ' \.symtab '; then
        continue
    fi
    # Two parts of `make test` may do this at the same time, and a program that is being written cannot run.
    stripped=$program.stripped.$$
    "$objcopy" --only-keep-debug "$program" "$program.debug"
    chmod a-x "$program.debug"
    "$objcopy" --strip-all --add-gnu-debuglink="$program.debug" "$program" "$stripped"
    mv -f "$stripped" "$program"
done
