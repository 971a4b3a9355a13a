#!/usr/bin/env bash
# Fails if a program needs a newer glibc than VERSION, or a library that old systems may lack.
# Usage: dist/check_symbols.sh VERSION PROGRAM…
set -euo pipefail
most=$1
shift
for program in "$@"; do
    newest=$(readelf --version-info --wide "$program" | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -uV | tail -1)
    if [ "$(printf '%s\n' "$most" "$newest" | sort -V | tail -1)" != "$most" ]; then
        echo "$program needs glibc $newest, and $most is the oldest that it has to run on" >&2
        exit 1
    fi
    others=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(lib(c|m|pthread|dl|rt)|ld-linux-(x86-64|aarch64))\.so' || true)
    if [ -n "$others" ]; then
        echo "$program needs $others, which old systems may lack" >&2
        exit 1
    fi
done
