"""Queries with one problem each that a rule of `unfuse advise` is about (`now`), or with the rewrite that it suggests (`then`).

Arguments: data directory (TPC-H), the job, `now` or `then`, rounds. Prints the seconds of each round as JSON.
"""

import json
import os
import sys
import tempfile
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

data, job, variant, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
spark = SparkSession.builder.appName("unfuse advise").getOrCreate()
for table in ["lineitem", "orders", "supplier", "customer"]:
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


def broadcast_suppliers(rewritten):
    hint = "/*+ BROADCAST(supplier) */" if rewritten else ""
    return spark.sql(
        f"SELECT {hint} s_nationkey, sum(l_quantity), max(l_shipdate) FROM lineitem JOIN supplier ON l_suppkey = s_suppkey GROUP BY 1"
    )


def broadcast_customers(rewritten):
    hint = "/*+ BROADCAST(customer) */" if rewritten else ""
    return spark.sql(
        f"""SELECT {hint} o_orderkey, o_totalprice, c_mktsegment FROM orders LEFT JOIN
           (SELECT c_custkey, c_mktsegment FROM customer WHERE c_acctbal > 0) customer ON o_custkey = c_custkey"""
    )


def decimals(rewritten):
    value = (lambda name: f"CAST({name} AS DOUBLE)") if rewritten else (lambda name: name)
    price, discount, tax = (value(name) for name in ["l_extendedprice", "l_discount", "l_tax"])
    return spark.sql(
        f"SELECT l_shipmode, sum({price} * (1 - {discount}) * (1 + {tax})), max({price} * {tax} * (1 + {discount})) FROM lineitem GROUP BY 1"
    )


def decimal_ratios(rewritten):
    price, quantity = ("CAST(l_extendedprice AS DOUBLE)", "CAST(l_quantity AS DOUBLE)") if rewritten else ("l_extendedprice", "l_quantity")
    return spark.sql(f"SELECT l_suppkey, avg({price} / {quantity}) FROM lineitem WHERE l_linenumber < 4 GROUP BY 1")


def regular_expressions(rewritten):
    find = "contains(l_comment, 'regular')" if rewritten else "l_comment RLIKE '.*regular.*'"
    return spark.sql(f"SELECT l_shipmode, count(*) FROM lineitem WHERE {find} GROUP BY 1")


def regular_replacements(rewritten):
    text = "replace(l_comment, 'fluffily', '')" if rewritten else "regexp_replace(l_comment, 'fluffily', '')"
    return spark.sql(f"SELECT l_orderkey, {text} text FROM lineitem WHERE l_orderkey % 2 = 0")


def text_files(rewritten):
    """A query of a table in CSV, or in Parquet. The files are written before the first round begins."""
    form, path = ("parquet", f"{files}/parquet") if rewritten else ("csv", f"{files}/csv")
    lines = spark.table("lineitem").where("l_orderkey % 4 = 0")
    if not os.path.exists(path):
        lines.write.format(form).save(path)
    if not spark.catalog.tableExists("lines"):
        spark.read.format(form).schema(lines.schema).load(path).createTempView("lines")
    return spark.sql("SELECT l_returnflag, sum(l_quantity), max(l_extendedprice) FROM lines GROUP BY 1")


def json_files(rewritten):
    """The same in JSON, of other columns."""
    form, path = ("parquet", f"{files}/parquet") if rewritten else ("json", f"{files}/json")
    orders = spark.table("orders").where("o_orderkey % 4 = 0")
    if not os.path.exists(path):
        orders.write.format(form).save(path)
    if not spark.catalog.tableExists("some_orders"):
        spark.read.format(form).schema(orders.schema).load(path).createTempView("some_orders")
    return spark.sql("SELECT o_orderpriority, o_orderstatus, max(o_totalprice), min(o_clerk) FROM some_orders GROUP BY 1, 2")


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


def not_fused(_):
    return spark.sql(
        """SELECT l_returnflag, l_linestatus, sum(l_orderkey % 7 + l_partkey), max(l_suppkey * 2 + l_linenumber), count(*) FROM lineitem
           WHERE l_partkey % 3 = 0 OR l_suppkey % 5 = 1 GROUP BY 1, 2"""
    )


def not_fused_join(_):
    return spark.sql(
        """SELECT s_nationkey, sum(l_linenumber + l_partkey % 11), count(*) FROM lineitem JOIN supplier ON l_suppkey = s_suppkey
           WHERE l_linenumber > 1 GROUP BY 1"""
    )


def tiny_tasks(_):
    return spark.sql("SELECT l_suppkey, count(*), sum(l_quantity) FROM lineitem GROUP BY 1")


def tiny_tasks_of_joins(_):
    return spark.sql(
        """SELECT o_custkey, count(*), max(l_shipdate) FROM orders JOIN lineitem ON o_orderkey = l_orderkey
           WHERE o_orderdate > DATE '1998-01-01' GROUP BY 1"""
    )


def few_tasks(rewritten):
    lines = spark.sql("SELECT l_orderkey, l_comment FROM lineitem WHERE l_orderkey % 3 = 0")
    lines = lines if rewritten else lines.coalesce(1)
    return lines.selectExpr("l_orderkey", f"{hashed('l_comment', 3)} h")


def few_tasks_of_a_sort(rewritten):
    """Rows are sorted within partitions, of which coalesce leaves one."""
    lines = spark.sql("SELECT l_suppkey, l_extendedprice, l_shipdate FROM lineitem WHERE l_orderkey % 2 = 0")
    lines = lines if rewritten else lines.coalesce(1)
    return lines.sortWithinPartitions("l_extendedprice", "l_shipdate")


def python_rows(rewritten):
    numbers = spark.range(0, 3_000_000, 1, 4)
    if rewritten:
        return numbers.selectExpr("id + 1")
    plus = udf(lambda number: number + 1, LongType())
    return numbers.select(plus("id"))


def python_texts(rewritten):
    orders = spark.table("orders")
    if rewritten:
        return orders.selectExpr("o_orderkey", "upper(substr(o_comment, 1, 10))")
    shorten = udf(lambda text: text[:10].upper())
    return orders.select("o_orderkey", shorten("o_comment"))


def skewed_join(_):
    """Four rows of ten have one key; each row is hashed after the join. No side is small."""
    keys = "CASE WHEN id % 10 < 4 THEN 7 ELSE id % 1000000 END k"
    large = spark.range(3_000_000).selectExpr(keys, "cast(id AS string) text")
    other = spark.range(1_500_000).selectExpr("id k", "repeat('x', 30) v")
    return large.hint("merge").join(other, "k").selectExpr(f"{hashed('concat(text, v)', 6)} h")


def sorted_lines():
    """A copy of a table that is sorted by date, in files of several blocks."""
    path = f"{files}/sorted"
    if not os.path.exists(path):
        lines = spark.table("lineitem").select("l_orderkey", "l_shipdate", "l_shipmode", "l_extendedprice", "l_comment")
        lines = lines.repartitionByRange(8, "l_shipdate").sortWithinPartitions("l_shipdate")
        lines.write.option("parquet.block.size", 4 << 20).parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("sorted_lines")


def pushdown(rewritten):
    sorted_lines()
    month = "l_shipdate >= DATE '1995-03-01' AND l_shipdate < DATE '1995-04-01'"
    where = month if rewritten else "year(l_shipdate) = 1995 AND month(l_shipdate) = 3"
    return spark.sql(f"SELECT l_shipmode, sum(l_extendedprice), max(l_comment) FROM sorted_lines WHERE {where} GROUP BY 1")


def pushdown_of_keys(rewritten):
    """A table that is sorted by its key as it is."""
    where = "l_orderkey >= 1000000 AND l_orderkey < 1100000" if rewritten else "CAST(l_orderkey AS STRING) LIKE '10_____'"
    return spark.sql(f"SELECT l_shipmode, count(*), max(l_comment) FROM lineitem WHERE {where} GROUP BY 1")


def read_again(rewritten):
    """A table in CSV that several queries read."""
    frame = text_files(False)
    if rewritten and not spark.catalog.isCached("lines"):
        spark.sql("CACHE TABLE lines")
    return frame


def read_json_again(rewritten):
    frame = json_files(False)
    if rewritten and not spark.catalog.isCached("some_orders"):
        spark.sql("CACHE TABLE some_orders")
    return frame


def idle_cpus(_):
    return spark.sql(f"SELECT max({hashed('l_comment', 2)}) FROM lineitem WHERE l_orderkey % 2 = 0")


def idle_cpus_of_a_join(_):
    return spark.sql(
        """SELECT l_shipmode, o_orderpriority, sum(l_extendedprice), count(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey
           WHERE l_receiptdate > l_commitdate GROUP BY 1, 2"""
    )


def heap(_):
    """Rows that live as long as their task, in objects."""
    return spark.sql("SELECT l_suppkey, size(collect_list(l_comment)) FROM lineitem WHERE l_quantity < 30 GROUP BY l_suppkey")


def heap_of_sets(_):
    return spark.sql("SELECT l_suppkey, size(collect_set(l_partkey)) FROM lineitem GROUP BY l_suppkey")


query = globals()[job.replace("-", "_")]
seconds = []
with tempfile.TemporaryDirectory() as files:
    for _ in range(rounds):
        frame = query(variant == "then")
        spark.sparkContext.setJobDescription(job)
        begun = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        seconds.append(time.monotonic() - begun)
spark.stop()
print(json.dumps(seconds))
