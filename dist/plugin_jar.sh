#!/usr/bin/env bash
# Makes the jar for spark.plugins: the plugin, with the agent and the program inside. Arguments: the folder that contains
# unfuse and libunfuse.so, and the jar to write.
set -euo pipefail
built=$1 jar=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
native="$work/native/linux-x86_64"
install -D -m 755 -t "$native" "$built/unfuse" "$built/libunfuse.so"
cp "$(dirname "$0")/../spark-patches/target/unfuse-spark-plugin.jar" "$work/unfuse-spark.jar"
# A fixed time, so that the same files make the same jar.
time=$(date -u -d "@${SOURCE_DATE_EPOCH:-1767225600}" +%Y-%m-%dT%H:%M:%SZ)
jar --update --file "$work/unfuse-spark.jar" --date="$time" -C "$work" native
install -D -m 644 "$work/unfuse-spark.jar" "$jar"
