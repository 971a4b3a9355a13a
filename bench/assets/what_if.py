"""Queries that differ by one change of known size, in rounds, for `unfuse-bench what-if`. Each is one SQL execution, but for the
jobs of `rdd`.

Arguments: data directory, a file of SQL by name (JSON), rounds, what to run: `sql`, `changes`, `heap`, `rdd` or `cache`; and
`plain` for Spark without the settings below.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

data, queries, rounds, what = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
# Files are cut and partitions counted in the same way whatever the number of slots.
SETTINGS = {
    "spark.default.parallelism": "8",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4m",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10000000",
}
builder = SparkSession.builder.appName("unfuse what-if")
if "plain" not in sys.argv[5:]:
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
spark = builder.getOrCreate()
for table in data.glob("*.parquet"):
    spark.read.parquet(str(table)).createOrReplaceTempView(table.stem)
with open(queries) as file:
    texts = json.load(file)


def run(name, frame):
    spark.sparkContext.setJobDescription(name)
    frame.write.format("noop").mode("overwrite").save()


def sql():
    for name, text in texts.items():
        run(name, spark.sql(text))


def hashed(column, times):
    for _ in range(times):
        column = f"sha2({column}, 256)"
    return column


def projected(times):
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


def aggregated(times):
    """The hashes are made by the update of an aggregate."""
    return spark.sql(
        f"SELECT l_suppkey, max({hashed('l_comment', times)}), sum(l_tax) FROM lineitem WHERE l_quantity < 15 GROUP BY l_suppkey"
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


def evict():
    """Removes the data from the page cache."""
    for table in data.glob("*.parquet"):
        with open(table, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def changes():
    key = hot_key()
    for times in [8, 4, 2]:
        run(f"project {times}", projected(times))
    for times in [6, 3, 1]:
        run(f"filter {times}", filtered(times))
    for salted in [False, True]:
        run(f"skew {'salted' if salted else 'as it is'}", skewed(key, salted))
    for ms in [50, 20, 10]:
        run(f"python {ms}", python(ms / 1e3))
    for name in ["q06", "q14"]:
        evict()
        run(f"cold {name}", spark.sql(texts[name]))
        run(f"warm {name}", spark.sql(texts[name]))
    run("project alone", projected(4))
    beside("project beside", projected(4), filtered(12))
    run("q03 alone", spark.sql(texts["q03"]))
    beside("q03 beside", spark.sql(texts["q03"]), aggregated(24))


def heap():
    """Queries whose rows live long, so that a small heap is collected often."""
    run("lists", spark.sql("SELECT l_suppkey, size(collect_list(l_comment)) FROM lineitem WHERE l_quantity < 30 GROUP BY l_suppkey"))
    run("sets", spark.sql("SELECT l_suppkey, size(collect_set(l_partkey)) FROM lineitem GROUP BY l_suppkey"))


def cache():
    """Queries that read a table from files, and from Spark's cache."""
    for table, names in CACHED[data.name.split("-")[0]].items():
        for name in names:
            run(f"files {name}", spark.sql(texts[name]))
        spark.sparkContext.setJobDescription("fill the cache")
        spark.sql(f"CACHE TABLE {table}")
        for name in names:
            run(f"cached {name}", spark.sql(texts[name]))
        spark.sparkContext.setJobDescription("empty the cache")
        spark.sql(f"UNCACHE TABLE {table}")


# Tables of the data, and queries that read them.
CACHED = {
    "tpch": {"lineitem": ["q01", "q03", "q06", "q12", "q14", "q15"], "orders": ["q04", "q13", "q22"]},
    "tpcds": {"store_sales": ["q03", "q07", "q19", "q42", "q48", "q79", "q98"], "catalog_sales": ["q15", "q20", "q26"]},
}


def rdd():
    """Words of numbers, counted by Python functions: an application without SQL."""
    numbers = spark.sparkContext.parallelize(range(1_500_000), 24)
    words = numbers.flatMap(lambda number: [str(number % 1000), str(number)[:2]])
    words.map(lambda word: (word, 1)).reduceByKey(lambda one, other: one + other, 8).count()


for _ in range(rounds):
    {"sql": sql, "changes": changes, "heap": heap, "rdd": rdd, "cache": cache}[what]()
spark.stop()
