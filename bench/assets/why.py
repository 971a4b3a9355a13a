"""A query for each cause that `unfuse why` should name: without it (`before`) or with it (`after`).

Arguments: data directory (TPC-H), a directory for files, the cause, `before` or `after`, rounds that warm up, rounds that count.
Prints the seconds of each round that counts as JSON. Those rounds have the cause as description.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

data, files, cause, variant = sys.argv[1:5]
warm_up, rounds = int(sys.argv[5]), int(sys.argv[6])
slow = variant == "after"
spark = SparkSession.builder.appName("unfuse why").getOrCreate()
lines = f"{data}/lineitem.parquet"
for table in ["lineitem", "orders", "supplier"]:
    spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)


def written(name, frame):
    """A table of files, which is written anew in each variant and has the same path in both."""
    path = f"{files}/{name}"
    frame.write.mode("overwrite").parquet(path)
    return spark.read.parquet(path)


def revenue(table="lineitem"):
    return spark.sql(
        f"""SELECT s_nationkey, l_returnflag, SUM(l_extendedprice * (1 - l_discount)), AVG(l_quantity)
           FROM {table} JOIN supplier ON l_suppkey = s_suppkey GROUP BY s_nationkey, l_returnflag"""
    )


def data_twice():
    copy = shutil.copy(lines, f"{files}/copy.parquet")
    spark.read.parquet(*([lines, copy] if slow else [lines])).createOrReplaceTempView("some")
    return lambda: revenue("some")


def broadcast_disabled():
    return revenue


def codegen_off():
    return revenue


def codegen_limit():
    """Expressions that cost more where each has an object of its own."""
    terms = " + ".join(f"(l_partkey * {n} + l_suppkey % {n} + l_linenumber)" for n in range(2, 42))
    return lambda: spark.sql(f"SELECT l_returnflag, sum({terms}) FROM lineitem GROUP BY 1")


def neighbour_outside():
    return revenue


def neighbour_inside():
    return revenue


def smaller_heap():
    """What a table in memory leaves of the heap is little in one of the variants."""
    kept = spark.table("orders").selectExpr("o_orderkey", "o_comment").cache()
    kept.count()
    return lambda: spark.sql(
        "SELECT l_suppkey, collect_set(l_partkey) p, max(l_comment) m FROM lineitem WHERE l_orderkey % 3 = 0 GROUP BY l_suppkey"
    )


def skewed_key():
    key = "IF(l_linenumber < 4, 7, l_orderkey)" if slow else "l_orderkey"
    table = written("keyed", spark.table("lineitem").selectExpr(f"CAST({key} AS BIGINT) k", "l_comment text"))
    return lambda: table.repartition(8, "k").selectExpr("length(sha2(repeat(text, 20), 512)) h")


def slow_line():
    times = 60 if slow else 4

    @udf("long")
    def folded(text):
        value = 7
        for number in range(times):
            value = (value * 31 + len(text) + number) % 1000003
        return value

    return lambda: spark.table("orders").select(folded("o_comment"))


def slower_operator():
    """The same rows, and an expression that computes more for each of them."""
    times = 30 if slow else 5
    table = written("texts", spark.table("lineitem").selectExpr("l_comment text", f"{times} times"))
    return lambda: table.selectExpr("length(sha2(repeat(text, times), 512)) h")


def fewer_slots():
    return revenue


def waits_for_others():
    """A call in some rows that sleeps, as one to a service would."""
    ms = 20 if slow else 2
    table = written("calls", spark.table("orders").selectExpr("o_orderkey k", f"CAST({ms} AS BIGINT) ms"))
    return lambda: table.selectExpr("IF(k % 8000 = 0, reflect('java.lang.Thread', 'sleep', ms), 'none') r", "hash(k) h")


def failed_tasks():
    """First attempts of tasks that fail at some rows."""

    @udf("long")
    def checked(key):
        if slow and key % 1000000 == 3 and TaskContext.get().attemptNumber() == 0:
            time.sleep(1.5)
            raise RuntimeError("a first attempt that fails")
        return key

    orders = spark.table("orders").repartition(4)
    return lambda: orders.select(checked("o_orderkey"))


def many_partitions():
    return lambda: spark.sql("SELECT l_suppkey, count(*), sum(l_quantity) FROM lineitem GROUP BY 1")


def spilled_sort():
    return lambda: spark.sql("SELECT l_comment, l_orderkey FROM lineitem ORDER BY l_comment")


def no_pushdown():
    """Rows that are sorted by what the filter asks for."""
    table = written("sorted", spark.table("lineitem").repartition(2).sortWithinPartitions("l_orderkey"))
    return lambda: table.where("l_orderkey < 60000").selectExpr("max(l_comment)", "sum(l_extendedprice)")


def burn():
    """Processes that compute as long as a file is there. They are not this program's, whose time is the application's."""
    program = "import os, sys\nwhile os.path.exists(sys.argv[1]): sum(range(100000))"
    path = f"{files}/burns"
    open(path, "w").close()
    for _ in range(os.cpu_count()):
        subprocess.run(["setsid", "--fork", sys.executable, "-c", program, path], check=True)
    return path


def compute_beside():
    """Another query, in another thread, of short tasks that compute until it is cancelled."""

    def run():
        spark.sparkContext.addJobTag("beside")
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", "beside")
        spark.sparkContext.setJobDescription("beside")
        try:
            spark.sql("SELECT sum(hash(id, id * 3, id % 17)) FROM range(0, 400000000000, 1, 20000)").collect()
        except Exception:
            pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(2)
    return thread


query = globals()[cause.replace("-", "_")]()
seconds = []
burns = None
for round in range(warm_up + rounds):
    if slow and round == warm_up and cause == "neighbour-outside":
        burns = burn()
    if slow and round == warm_up and cause == "neighbour-inside":
        compute_beside()
    spark.sparkContext.setJobDescription(cause if round >= warm_up else "warm-up")
    frame = query()
    begun = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    seconds.append(time.monotonic() - begun)
if burns:
    os.remove(burns)
spark.sparkContext.cancelJobsWithTag("beside")
spark.stop()
print(json.dumps(seconds[warm_up:]))
