#!/usr/bin/env bash
# Moves symbols and debug information of programs into files beside them, NAME.debug, where debuggers and backtraces find it.
set -eu
for program in "$@"; do
    # Cargo's own copy is another name of the same file, and stays as it is.
    if ! readelf --sections --wide "$program" | grep -q ' \.symtab '; then
        continue
    fi
    objcopy --only-keep-debug "$program" "$program.debug"
    chmod a-x "$program.debug"
    objcopy --strip-all --add-gnu-debuglink="$program.debug" "$program" "$program.stripped"
    mv -f "$program.stripped" "$program"
done
