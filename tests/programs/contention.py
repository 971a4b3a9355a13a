"""Queries at the same time: `contention.py CASE ROWS [URI]`, where CASE is cpu, slots, garbage, heap, network or alone. Prints the
seconds of the victim.

The victim aggregates a range. At the same time, an idle query sleeps for longer. In the cases cpu and slots, a culprit hashes long
texts. In the case garbage, a culprit collects many texts, and another query computes without making any object. In the case
heap, a culprit has filled a cache before, and the victim makes texts. In the case network, victim and culprit read the files
`victim` and `culprit` of the directory URI, and another query computes. The job description of each query is its name.
"""

import sys
import threading
import time

from pyspark.sql import SparkSession

case = sys.argv[1]
spark = SparkSession.builder.appName("unfuse contention").getOrCreate()
context = spark.sparkContext
VICTIM = "SELECT k, sum(v) FROM (SELECT id % 1000 AS k, hash(id, id * 3, id % 17) AS v FROM range(0, {rows}, 1, 8)) GROUP BY k"
IDLE = "SELECT count(*) FROM range(0, 400, 1, 1) WHERE length(reflect('java.lang.Thread', 'sleep', 50L)) > 0"
CULPRIT = "SELECT max(length(sha2(repeat(cast(id AS string), 3000), 512))) FROM range(0, {rows}, 1, 8)"
GARBAGE = """SELECT max(size(texts)) FROM (SELECT collect_list(concat('text ', id)) AS texts FROM
    (SELECT explode(array(0, 1, 2, 3, 4, 5)) AS time, id FROM range(0, {rows}, 1, 4)) GROUP BY time, id % 100)"""
COMPUTES = "SELECT max(hash(id, id * 7, id % 13)) FROM range(0, {rows}, 1, 4)"
TEXTS = "SELECT max(length(concat(id, repeat(cast(id AS string), 100)))) FROM range(0, {rows}, 1, 8)"
READS = "SELECT count(*), max(length(value)) FROM text.`{uri}/{file}`"


def run(name, sql):
    context.setLocalProperty("spark.job.description", name)
    context.setLocalProperty("spark.scheduler.pool", name)
    start = time.time()
    spark.sql(sql).write.format("noop").mode("overwrite").save()
    return time.time() - start


def fill_the_cache():
    context.setLocalProperty("spark.job.description", "culprit")
    texts = spark.range(0, 2_100_000, 1, 8).selectExpr("repeat(sha2(cast(id AS string), 256), 4) AS text")
    texts.persist().count()


rows = int(sys.argv[2])
uri = sys.argv[3] if len(sys.argv) > 3 else ""
victim = {"heap": TEXTS, "network": READS.format(uri=uri, file="victim")}.get(case, VICTIM)
run("warm-up", victim.format(rows=rows // 10))
beside = [("idle", IDLE)]
if case in ("cpu", "slots"):
    beside.append(("culprit", CULPRIT.format(rows=rows // 500)))
if case == "garbage":
    beside += [("culprit", GARBAGE.format(rows=rows // 400)), ("computes", COMPUTES.format(rows=2 * rows))]
if case == "network":
    beside += [("culprit", READS.format(uri=uri, file="culprit")), ("computes", COMPUTES.format(rows=rows))]
if case == "heap":
    fill_the_cache()
threads = [threading.Thread(target=run, args=one) for one in beside]
for thread in threads:
    thread.start()
time.sleep(1.5)
print(f"victim {run('victim', victim.format(rows=rows)):.2f}")
for thread in threads:
    thread.join()
spark.stop()
