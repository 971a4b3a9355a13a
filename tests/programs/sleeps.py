"""A query of which one operator sleeps, some seconds in all, and a shuffle after it."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

spark = SparkSession.builder.appName("unfuse test").getOrCreate()
rows, ms = int(sys.argv[1]), int(sys.argv[2])
(
    spark.range(0, rows, 1, 4)
    .where(f"length(reflect('java.lang.Thread', 'sleep', {ms}L)) > 0")
    .groupBy((col("id") % 7).alias("k"))
    .count()
    .write.format("noop")
    .mode("overwrite")
    .save()
)
spark.stop()
print(f"slept {rows * ms} ms")
