#!/usr/bin/env bash
# Builds unfuse and runs `unfuse demo`, for `make demo`. At the end, prints the time of each part.
set -eu
cd "$(dirname "$0")/.."
mkdir -p target

# pip builds PySpark's wheel from the source package, on one CPU. Running it in parallel with the compiler saves time, and
# `unfuse demo` finds the wheel in pip's cache. If it fails, `unfuse demo` reports why.
wheel() {
    local cache="${XDG_CACHE_HOME:-$HOME/.cache}/unfuse"
    compgen -G "$cache/spark-4.3-*/installed" >/dev/null && return
    python3 -m venv target/wheels
    target/wheels/bin/python -m pip wheel --quiet --no-deps --require-hashes -r cli/assets/spark-4.3.lock -w target/wheels/made
}

wheel >target/wheels.log 2>&1 &
wheel=$!
make --no-print-directory build
built=$SECONDS
wait "$wheel" || true
rm -rf target/wheels
waited=$((SECONDS - built))
target/release/unfuse demo
printf 'make demo took %d s: build %d s, PySpark beside it %d s more, demo %d s\n' \
    "$SECONDS" "$built" "$waited" $((SECONDS - built - waited)) >&2
