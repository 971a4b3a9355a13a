"""A query for each rule of `unfuse advise`, as a job with one problem (`now`), or with the rewrite that the rule suggests (`then`).

Arguments: data directory (TPC-H), the rule, `now` or `then`, rounds. Prints the seconds of each round as JSON.
"""

import json
import os
import sys
import tempfile
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

data, rule, variant, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
spark = SparkSession.builder.appName("unfuse advise").getOrCreate()
for table in ["lineitem", "orders"]:
    spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)


def hashed(column, times):
    for _ in range(times):
        column = f"sha2({column}, 256)"
    return column


def broadcast(rewritten):
    hint = "/*+ BROADCAST(orders) */" if rewritten else ""
    return spark.sql(
        f"""SELECT {hint} o_orderpriority, count(*), sum(l_extendedprice) FROM lineitem JOIN orders ON l_orderkey = o_orderkey
           WHERE o_orderdate < DATE '1992-04-01' GROUP BY o_orderpriority"""
    )


def decimals(rewritten):
    value = (lambda name: f"CAST({name} AS DOUBLE)") if rewritten else (lambda name: name)
    price, discount, tax = (value(name) for name in ["l_extendedprice", "l_discount", "l_tax"])
    return spark.sql(
        f"SELECT l_shipmode, sum({price} * (1 - {discount}) * (1 + {tax})), max({price} * {tax} * (1 + {discount})) FROM lineitem GROUP BY 1"
    )


def regular_expressions(rewritten):
    find = "contains(l_comment, 'regular')" if rewritten else "l_comment RLIKE '.*regular.*'"
    return spark.sql(f"SELECT l_shipmode, count(*) FROM lineitem WHERE {find} GROUP BY 1")


def text_files(rewritten):
    """A query of a table in CSV, or in Parquet. The files are written before the first round begins."""
    form, path = ("parquet", f"{files}/parquet") if rewritten else ("csv", f"{files}/csv")
    lines = spark.table("lineitem").where("l_orderkey % 4 = 0")
    if not os.path.exists(path):
        lines.write.format(form).save(path)
    spark.read.format(form).schema(lines.schema).load(path).createOrReplaceTempView("lines")
    return spark.sql("SELECT l_returnflag, sum(l_quantity), max(l_extendedprice) FROM lines GROUP BY 1")


def small_files(rewritten):
    """A query of a table of 2,000 files, or of two. The files are written before the first round begins."""
    path = f"{files}/lines"
    lines = spark.table("lineitem").repartition(2)
    if not os.path.exists(path):
        lines.write.option("maxRecordsPerFile", 0 if rewritten else 3_000).parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("lines")
    return spark.sql("SELECT l_returnflag, sum(l_quantity), max(l_extendedprice) FROM lines GROUP BY 1")


def interpreted_code(_):
    columns = ", ".join(
        f"CASE WHEN l_partkey % {n} = 0 THEN l_suppkey * {n} WHEN l_orderkey % {n} = 1 THEN l_partkey - {n} ELSE l_linenumber + {n} END c{n}"
        for n in range(3, 93)
    )
    return spark.sql(f"SELECT {columns} FROM lineitem WHERE l_orderkey % 4 = 0")


def tiny_tasks(_):
    return spark.sql("SELECT l_suppkey, count(*), sum(l_quantity) FROM lineitem GROUP BY 1")


def few_tasks(rewritten):
    lines = spark.sql("SELECT l_orderkey, l_comment FROM lineitem WHERE l_orderkey % 3 = 0")
    lines = lines.repartition(2) if rewritten else lines.coalesce(1)
    return lines.selectExpr("l_orderkey", f"{hashed('l_comment', 3)} h")


def python_rows(rewritten):
    numbers = spark.range(0, 3_000_000, 1, 4)
    if rewritten:
        return numbers.selectExpr("id + 1")
    plus = udf(lambda number: number + 1, LongType())
    return numbers.select(plus("id"))


def skewed_join(_):
    """Four rows of ten have one key; each row is hashed after the join. No side is small."""
    keys = "CASE WHEN id % 10 < 4 THEN 7 ELSE id % 1000000 END k"
    large = spark.range(3_000_000).selectExpr(keys, "cast(id AS string) text")
    other = spark.range(1_500_000).selectExpr("id k", "repeat('x', 30) v")
    return large.hint("merge").join(other, "k").selectExpr(f"{hashed('concat(text, v)', 6)} h")


query = globals()[rule.replace("-", "_")]
seconds = []
with tempfile.TemporaryDirectory() as files:
    for _ in range(rounds):
        frame = query(variant == "then")
        spark.sparkContext.setJobDescription(rule)
        begun = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        seconds.append(time.monotonic() - begun)
spark.stop()
print(json.dumps(seconds))
