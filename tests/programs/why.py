"""One query in variants, in turn. Each differs from the first variant by one cause. A round runs each variant once. At the end
a query reads a copy of the lines as CSV.

Arguments: data directory, a directory for copies of it, rounds.
"""

import shutil
import sys

from pyspark.sql import SparkSession

data, copies, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
lines = f"{data}/lineitem.parquet"
thrice = [lines] + [shutil.copy(lines, f"{copies}/{number}.parquet") for number in range(2)]
spark = SparkSession.builder.appName("unfuse why").getOrCreate()
spark.read.parquet(f"{data}/supplier.parquet").createOrReplaceTempView("supplier")
spark.read.parquet(lines).createOrReplaceTempView("once")
spark.read.parquet(*thrice).createOrReplaceTempView("thrice")
variants = [
    ("once", "10m", 65535),
    ("once", "-1", 65535),  # a sort-merge join
    ("thrice", "10m", 65535),  # more data
    ("once", "10m", 100),  # generated code that is dropped
]
spark.sparkContext.setJobDescription("revenue by nation")
for _ in range(rounds):
    for table, threshold, limit in variants:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        spark.conf.set("spark.sql.codegen.hugeMethodLimit", limit)
        spark.sql(
            f"""SELECT s_nationkey, l_returnflag, SUM(l_extendedprice * (1 - l_discount)), AVG(l_quantity)
               FROM {table} JOIN supplier ON l_suppkey = s_suppkey GROUP BY s_nationkey, l_returnflag"""
        ).write.format("noop").mode("overwrite").save()

spark.sparkContext.setJobDescription("a copy")
copy = spark.table("once").select("l_returnflag", "l_quantity", "l_extendedprice", "l_comment")
copy.write.csv(f"{copies}/csv")
spark.read.schema(copy.schema).csv(f"{copies}/csv").createOrReplaceTempView("text")
spark.sparkContext.setJobDescription("lines of text")
query = "SELECT l_returnflag, sum(l_quantity), max(l_comment) FROM text GROUP BY 1"
spark.sql(query).write.format("noop").mode("overwrite").save()
spark.stop()
