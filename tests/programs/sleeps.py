"""A query with an operator that sleeps, some seconds altogether, and then a shuffle."""

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
