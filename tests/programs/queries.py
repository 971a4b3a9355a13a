"""A few fused queries on TPC-H data, repeated for some seconds.

Arguments: data directory, seconds, exit code [0], least number of rounds [1].

If UNFUSE_TEST_STOP names a file, the program ends as soon as that file exists or its directory does not. A failed test has
deleted the directory.
"""

import os
import sys
import time

from pyspark.sql import SparkSession

data, seconds = sys.argv[1], float(sys.argv[2])
spark = SparkSession.builder.appName("unfuse test").getOrCreate()
for table in ("lineitem", "supplier", "orders"):
    spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)

queries = [
    """SELECT (l_suppkey * 100) + s_nationkey, AVG(l_extendedprice), SUM(l_quantity), AVG(l_discount)
       FROM lineitem JOIN (SELECT * FROM supplier ORDER BY s_acctbal DESC LIMIT 10000) ON l_suppkey = s_suppkey
       WHERE l_commitdate > DATE '1993-01-01' GROUP BY (l_suppkey * 100) + s_nationkey""",
    """SELECT l_returnflag, l_linestatus, SUM(l_quantity), SUM(l_extendedprice * (1 - l_discount)), COUNT(*)
       FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
]
end = time.time() + seconds
rounds = 0
stop = os.environ.get("UNFUSE_TEST_STOP")


def is_stopped():
    return stop and (os.path.exists(stop) or not os.path.exists(os.path.dirname(stop)))


least = int(sys.argv[4]) if len(sys.argv) > 4 else 1
while rounds < least or (time.time() < end and not is_stopped()):
    for query in queries:
        spark.sql(query).write.format("noop").mode("overwrite").save()
    rounds += 1
spark.stop()
print(f"rounds {rounds}")
if len(sys.argv) > 3:
    sys.exit(int(sys.argv[3]))
