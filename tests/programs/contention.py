"""Queries at the same time: `contention.py CASE ROWS`, where CASE is cpu, slots or alone. Prints the seconds of the victim.

The victim aggregates a range. At the same time, an idle query sleeps for longer. In the cases cpu and slots, a culprit hashes long
texts. The job description of each query is its name.
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


def run(name, sql):
    context.setLocalProperty("spark.job.description", name)
    context.setLocalProperty("spark.scheduler.pool", name)
    start = time.time()
    spark.sql(sql).write.format("noop").mode("overwrite").save()
    return time.time() - start


rows = int(sys.argv[2])
run("warm-up", VICTIM.format(rows=rows // 10))
threads = [threading.Thread(target=run, args=("idle", IDLE))]
if case != "alone":
    threads.append(threading.Thread(target=run, args=("culprit", CULPRIT.format(rows=rows // 500))))
for thread in threads:
    thread.start()
time.sleep(1.5)
print(f"victim {run('victim', VICTIM.format(rows=rows)):.2f}")
for thread in threads:
    thread.join()
spark.stop()
