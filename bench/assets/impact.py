"""A job for `unfuse impact measure`. Arguments: compute | read | both, a directory of files to read."""

import sys

from pyspark.sql import SparkSession

job, data = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
parts = []
if job in ("compute", "both"):
    rows = 900_000_000 if job == "compute" else 300_000_000
    parts.append(spark.sql(f"SELECT sum(hash(id, id * 3, id % 17)) FROM range(0, {rows}, 1, 8)"))
if job in ("read", "both"):
    files = spark.read.format("binaryFile").load(data)
    parts.append(files.selectExpr("sum(length(content))"))
for part in parts:
    part.collect()
spark.stop()
