"""Queries that differ by one change of known size, in rounds, for `unfuse what-if`. Each is one SQL execution.

Arguments: data directory (TPC-H), a file with its queries (bench/assets/tpch.sql), rounds, and what to run: `tpch`, `changes`.
"""

import re
import sys
import threading
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

data, queries, rounds, what = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
TPCH = ["q01", "q03", "q04", "q05", "q06", "q09", "q10", "q12", "q14", "q18", "q19", "q21"]
# Files are cut and partitions counted in the same way whatever the number of slots.
builder = SparkSession.builder.appName("unfuse what-if").config("spark.default.parallelism", "8")
spark = (
    builder.config("spark.sql.shuffle.partitions", "16")
    .config("spark.sql.files.maxPartitionBytes", "16m")
    .config("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
    .config("spark.sql.adaptive.advisoryPartitionSizeInBytes", "4m")
    .getOrCreate()
)
for table in ["lineitem", "orders", "customer", "part", "partsupp", "supplier", "nation", "region"]:
    spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)


def run(name, frame):
    spark.sparkContext.setJobDescription(name)
    frame.write.format("noop").mode("overwrite").save()


def tpch():
    parts = re.split(r"^-- (q\d+)\n", open(queries).read(), flags=re.M)
    texts = {name: text.strip().rstrip(";") for name, text in zip(parts[1::2], parts[2::2])}
    for _ in range(rounds):
        for name in TPCH:
            run(name, spark.sql(texts[name]))


def hashed(column, times):
    for _ in range(times):
        column = f"sha2({column}, 256)"
    return column


def joined(times):
    """The hashes are made by a projection above a join, in one fused loop with it."""
    return spark.sql(
        f"""SELECT s_nationkey, max(h) FROM (
              SELECT s_nationkey, {hashed("concat(l_comment, s_nationkey)", times)} h
              FROM lineitem JOIN supplier ON l_suppkey = s_suppkey WHERE l_quantity < 20)
            GROUP BY s_nationkey"""
    )


def filtered(times):
    """The hashes are made by a filter below an aggregation."""
    return spark.sql(
        f"""SELECT l_returnflag, l_suppkey, count(*), sum(l_extendedprice * (1 - l_discount)) FROM lineitem
            WHERE l_orderkey % 3 = 0 AND {hashed("l_comment", times)} > '4' GROUP BY l_returnflag, l_suppkey"""
    )


def hot_key():
    """A key whose partition is the last of 200, so that its task begins when the others are done."""
    keys = spark.range(100000).where("pmod(hash(id), 200) = 199")
    return keys.first()[0]


def skewed(key, salted):
    """Six rows of ten have one key of 2,000, out of 200 partitions."""
    frame = spark.range(3_000_000).selectExpr("id", f"CASE WHEN id % 10 < 6 THEN {key} ELSE id % 2000 END k", "id % 64 salt")
    frame = frame.repartition(200, "k", "salt") if salted else frame.repartition(200, "k")
    return frame.selectExpr("k", f"{hashed('cast(id AS string)', 3)} h")


def python(seconds):
    """A worker sleeps at one row of 5,000."""

    def slow(number):
        if number % 5000 == 0:
            time.sleep(seconds)
        return number

    slow_in_worker = udf(slow, LongType())
    return spark.range(0, 1_000_000, 1, 8).select(slow_in_worker("id"))


def beside(name, frame, neighbour):
    """A query while another one runs."""
    other = threading.Thread(target=run, args=("neighbour", neighbour))
    other.start()
    time.sleep(0.5)
    run(name, frame)
    other.join()


def changes():
    key = hot_key()
    for _ in range(rounds):
        for times in [8, 4, 2]:
            run(f"project {times}", joined(times))
        for times in [6, 3, 1]:
            run(f"filter {times}", filtered(times))
        for salted in [False, True]:
            run(f"skew {'salted' if salted else 'as it is'}", skewed(key, salted))
        for ms in [50, 10]:
            run(f"python {ms}", python(ms / 1e3))
        run("alone", joined(4))
        beside("beside", joined(4), filtered(12))


{"tpch": tpch, "changes": changes}[what]()
spark.stop()
