#!/bin/bash
# Init script for Databricks: puts the plugin's jar into Spark's class path on every node. The cluster's Spark configuration:
#   spark.plugins io.unfuse.spark.UnfusePlugin
#   spark.unfuse.dir abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/profiles
# UNFUSE_JAR is where you uploaded the jar.
set -eu
jar=${UNFUSE_JAR:-/Volumes/main/default/tools/unfuse-spark.jar}
into=${UNFUSE_JARS_DIR:-/databricks/jars}
if [ ! -f "$jar" ]; then
    # Without the jar, Spark would not start with the setting: say it, and let the cluster fail here.
    echo "unfuse: $jar is missing; upload unfuse-spark-VERSION.jar there, or set UNFUSE_JAR" >&2
    exit 1
fi
install -m 644 "$jar" "$into/unfuse-spark.jar"
