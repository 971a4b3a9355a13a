"""A query of which one operator sleeps, some seconds in all, and a shuffle after it."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("unfuse test").getOrCreate()
rows, ms = int(sys.argv[1]), int(sys.argv[2])
(
    spark.range(0, rows, 1, 4)
    .selectExpr("id % 7 AS k", f"reflect('java.lang.Thread', 'sleep', {ms}L) AS slept")
    .groupBy("k")
    .agg({"slept": "max"})
    .write.format("noop")
    .mode("overwrite")
    .save()
)
spark.stop()
print(f"slept {rows * ms} ms")
