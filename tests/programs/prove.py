"""Queries that run side by side until a file appears: `prove.py STOP`. A victim and a culprit compute, and a bystander sleeps. The job
description of each query is its name; the query `warm-up` has ended before they begin.
"""

import os
import sys
import threading
import time

from pyspark.sql import SparkSession

stop = sys.argv[1]
spark = SparkSession.builder.appName("unfuse prove").getOrCreate()
context = spark.sparkContext
COMPUTES = "SELECT max(hash(id, id * 3, id % 17)) FROM range(0, {rows}, 1, {tasks})"
SLEEPS = "SELECT count(*) FROM range(0, {rows}, 1, {tasks}) WHERE length(reflect('java.lang.Thread', 'sleep', 50L)) > 0"
FOREVER = 10**13


def run(name, sql, rows, tasks):
    context.setLocalProperty("spark.job.description", name)
    try:
        spark.sql(sql.format(rows=rows, tasks=tasks)).write.format("noop").mode("overwrite").save()
    except Exception:
        if not os.path.exists(stop):
            raise


run("warm-up", COMPUTES, 1_000_000, 1)
queries = [("victim", COMPUTES, FOREVER, 3), ("culprit", COMPUTES, FOREVER, 6), ("bystander", SLEEPS, FOREVER, 3)]
threads = [threading.Thread(target=run, args=query) for query in queries]
for thread in threads:
    thread.start()
while not os.path.exists(stop):
    time.sleep(0.2)
context.cancelAllJobs()
for thread in threads:
    thread.join()
spark.stop()
