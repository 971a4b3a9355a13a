#!/usr/bin/env bash
# Makes the jar for spark.plugins: the plugin, with the agent and the program inside. Arguments: the jar to write, then for
# each platform its name, such as linux-x86_64, and the folder that contains its unfuse and libunfuse.so.
set -euo pipefail
jar=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
while [ $# -gt 0 ]; do
    install -D -m 755 -t "$work/native/$1" "$2/unfuse" "$2/libunfuse.so"
    shift 2
done
cp "$(dirname "$0")/../spark-patches/target/unfuse-spark-plugin.jar" "$work/unfuse-spark.jar"
# A fixed time, so that the same files make the same jar.
time=$(date -u -d "@${SOURCE_DATE_EPOCH:-1767225600}" +%Y-%m-%dT%H:%M:%SZ)
jar --update --file "$work/unfuse-spark.jar" --date="$time" -C "$work" native
install -D -m 644 "$work/unfuse-spark.jar" "$jar"
