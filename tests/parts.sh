#!/usr/bin/env bash
# Runs targets of the Makefile in order. Targets joined by "+" run in parallel, and their outputs are printed when all of
# them have ended. At the end, prints the time of each target, and the names and messages of the failed tests. A failed target
# does not stop later targets.
set -u
cd "$(dirname "$0")/.."
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# The failed tests, from the output of cargo, Maven and Node. If no test has failed, the first error of make or cargo.
failures() {
    awk '
        function add(name) { if (!seen[name]++) names[++count] = name }
        /^failures:$/ { listed = 1; next }
        listed && /^    [^ ]/ { add(substr($0, 5)); next }
        { listed = 0 }
        /^ *not ok [0-9]+ - / { sub(/^ *not ok [0-9]+ - /, ""); add($0) }
        /<<< (FAILURE|ERROR)!/ && !/Tests run:/ { sub(/^\[ERROR\] */, ""); sub(/ -- Time elapsed.*/, ""); add($0) }
        /^(error|Diff in|\[warn\]|\[ERROR\]|make: \*\*\*)/ && !reason { reason = $0 }
        END {
            for (at = 1; at <= count; at++) print names[at]
            if (!count && reason) print reason
        }
    ' "$1"
}

# The messages of failed Rust tests, again: a reader of a long log looks at its end.
messages() {
    awk '
        /panicked at / { left = 8 }
        /^(note: run with|test |failures:|---- )/ { left = 0 }
        left-- > 0 { print "    " substr($0, 1, 300) }
    ' "$1" | head -n 60
}

run() {
    local begun=$SECONDS status=passed
    make --no-print-directory "$1" || status=FAILED
    local took=$((SECONDS - begun))
    printf '%-12s %3d min %02d s  %s\n' "$1" $((took / 60)) $((took % 60)) "$status" > "$logs/$1.time"
}

for together in "$@"; do
    IFS=+ read -ra parts <<< "$together"
    if [ ${#parts[@]} = 1 ]; then
        echo "== $together"
        run "$together" 2>&1 | tee "$logs/$together.log"
        continue
    fi
    for part in "${parts[@]}"; do
        run "$part" > "$logs/$part.log" 2>&1 &
    done
    wait
    for part in "${parts[@]}"; do
        echo "== $part"
        cat "$logs/$part.log"
    done
done

echo "== time of each part"
parts=(${@//+/ })
for part in "${parts[@]}"; do
    cat "$logs/$part.time"
done
printf '%-12s %3d min %02d s\n' all $((SECONDS / 60)) $((SECONDS % 60))
failed=0
for part in "${parts[@]}"; do
    grep -q ' FAILED$' "$logs/$part.time" || continue
    [ "$failed" = 1 ] || echo "== failed"
    failed=1
    failures "$logs/$part.log" | sed "s/^/$part: /"
    messages "$logs/$part.log"
done
exit "$failed"
