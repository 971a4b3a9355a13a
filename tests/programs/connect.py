"""A client of Spark Connect. Arguments: port, data directory, number of runs of its query."""

import sys

from pyspark.sql import SparkSession

port, data, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
lineitem = spark.read.parquet(f"{data}/lineitem.parquet")
query = (
    lineitem.where("l_shipdate <= date '1998-09-02'")
    .groupBy("l_suppkey")
    .agg({"l_quantity": "sum", "l_extendedprice": "avg"})
)
for _ in range(runs):
    assert len(query.collect()) > 1000
spark.stop()
