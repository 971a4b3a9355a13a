"""Aggregates columns of a Parquet file that is not in the page cache, several times.

Arguments: the file, rounds.
"""

import os
import sys

from pyspark.sql import SparkSession

path, rounds = sys.argv[1], int(sys.argv[2])
spark = SparkSession.builder.appName("unfuse cold scan").getOrCreate()
for _ in range(rounds):
    file = os.open(path, os.O_RDONLY)
    # Only pages that are on the disk can be dropped.
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
    spark.read.parquet(path).selectExpr("SUM(l_quantity)", "MAX(l_comment)", "MAX(l_shipdate)").collect()
spark.stop()
