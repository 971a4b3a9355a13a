"""Queries that wait for locks of the JVM: `locks.py CASE…`, where CASE is monitor, lock or chain.

Four tasks of the victim take a lock again and again, for a moment. The holder holds it most of the time, and computes and sleeps. In the case
chain, the holder waits for another lock while it holds this one, and the root holds that one. A bystander runs for as
long, sleeping in a lock of its own. The job description of each query is its name and the case.
"""

import sys
import threading
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("unfuse locks").getOrCreate()
context = spark.sparkContext
HOLDS = "SELECT count(*) FROM range(0, 100000, 1, {tasks}) WHERE length(reflect('Locks', 'holdOften', '{locks}', {compute}, {sleep}, id)) > 0"
VICTIM = "SELECT count(*) FROM range(0, 80, 1, 4) WHERE length(reflect('Locks', 'holdOften', '{lock}', 0, 0, id)) > 0"


def run(name, sql):
    context.setLocalProperty("spark.job.description", name)
    spark.sql(sql).collect()


for case in sys.argv[1:]:
    lock = "monitor" if case == "monitor" else f"lock-{case}"
    beside = [(f"bystander {case}", HOLDS.format(locks="own", compute=0, sleep=300, tasks=1))]
    if case == "chain":
        beside += [
            (f"holder {case}", HOLDS.format(locks=f"{lock} monitor-root", compute=0, sleep=0, tasks=1)),
            (f"root {case}", HOLDS.format(locks="monitor-root", compute=100, sleep=200, tasks=1)),
        ]
    else:
        beside.append((f"holder {case}", HOLDS.format(locks=lock, compute=100, sleep=200, tasks=1)))
    threads = [threading.Thread(target=run, args=one) for one in beside]
    for thread in threads:
        thread.start()
    while not all(spark._jvm.Locks.isTaken(one) for one in (lock, "own", "monitor-root" if case == "chain" else lock)):
        time.sleep(0.05)
    run(f"victim {case}", VICTIM.format(lock=lock))
    spark._jvm.Locks.stop(True)
    for thread in threads:
        thread.join()
    spark._jvm.Locks.stop(False)
spark.stop()
