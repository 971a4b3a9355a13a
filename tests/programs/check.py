"""One query, several times, each of which is one SQL execution.

Arguments: data directory, rounds, how many times the filter hashes a column.
"""

import sys

from pyspark.sql import SparkSession

data, rounds, hashes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
spark = SparkSession.builder.appName("unfuse check").getOrCreate()
spark.read.parquet(f"{data}/lineitem.parquet").createOrReplaceTempView("lineitem")
hashed = "l_comment"
for _ in range(hashes):
    hashed = f"sha2({hashed}, 256)"
spark.sparkContext.setJobDescription("quantity by flag")
for _ in range(rounds):
    spark.sql(
        f"SELECT l_returnflag, SUM(l_quantity) FROM lineitem WHERE {hashed} <> '' GROUP BY l_returnflag"
    ).write.format("noop").mode("overwrite").save()
spark.stop()
