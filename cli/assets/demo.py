"""The canonical scan-filter-join-aggregate query on TPC-H data, several times over."""

import sys

from pyspark.sql import SparkSession

data, rounds = sys.argv[1], int(sys.argv[2])
spark = SparkSession.builder.appName("unfuse demo").getOrCreate()
for table in ("lineitem", "supplier"):
    spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)

query = """
    SELECT (l_suppkey * 100) + s_nationkey, AVG(l_extendedprice), SUM(l_quantity),
           AVG(l_extendedprice), AVG(l_discount)
    FROM lineitem
    JOIN (SELECT * FROM supplier ORDER BY s_acctbal DESC LIMIT 10000) ON l_suppkey = s_suppkey
    WHERE l_commitdate > DATE '1993-01-01'
    GROUP BY (l_suppkey * 100) + s_nationkey
"""
for round in range(rounds):
    print(f"round {round + 1}", flush=True)
    spark.sql(query).write.format("noop").mode("overwrite").save()
spark.stop()
