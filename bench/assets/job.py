"""A benchmark's job: runs SQL statements in rounds and prints what each round took, as JSON lines.

Arguments: data directory, file of {"warm_up": n, "rounds": n, "queries": {name: sql}}; with
"spin": true a function spin(value, rounds) is there, see Spin.java; with
"async_profiler": {"library": path, "interval": "5ms", "into": directory, "kind": "collapsed" | "jfr"} each
query is sampled by it.
A round's CPU times are of the JVM, and of the profiler's processes beside it.
"""
import glob
import json
import os
import sys
import time

from pyspark.sql import SparkSession

TICK = os.sysconf("SC_CLK_TCK")
JVM = os.getppid()


def ticks(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def cpu_seconds():
    """Of the JVM, and of our processes (named unfuse-…)."""
    beside = 0
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path) as comm:
                if comm.read().startswith("unfuse-"):
                    beside += ticks(path.split("/")[2])
        except (FileNotFoundError, ProcessLookupError):
            pass  # ended meanwhile
    return ticks(JVM) / TICK, beside / TICK


spark = SparkSession.builder.getOrCreate()
with open(sys.argv[2]) as file:
    work = json.load(file)
for path in sorted(glob.glob(sys.argv[1] + "/*.parquet")):
    spark.read.parquet(path).createOrReplaceTempView(os.path.basename(path)[: -len(".parquet")])

if work["spin"]:
    spark.udf.registerJavaFunction("spin", "Spin", "long")
asked = work.get("async_profiler")
if asked:
    sampler = spark._jvm.one.profiler.AsyncProfiler.getInstance(asked["library"])

for number in range(-work["warm_up"], work["rounds"]):
    for name, sql in work["queries"].items():
        spark.sparkContext.setJobDescription(f"{name} {number}")
        if asked:
            file = f"file={asked['into']}/{name}_{number}.{asked['kind']},{asked['kind']}"
            sampler.execute(f"start,event=cpu,interval={asked['interval']},{file}")
        cpu, wall = cpu_seconds(), time.time()
        try:
            spark.sql(sql).write.format("noop").mode("overwrite").save()
        except Exception as error:
            print("FAILED " + json.dumps({"query": name, "reason": str(error).strip().split("\n")[0]}), flush=True)
            continue
        now, wall = cpu_seconds(), time.time() - wall
        if asked:
            sampler.execute(f"stop,{file}")
        result = {
            "query": name,
            "round": number,
            "wall_s": wall,
            "jvm_cpu_s": now[0] - cpu[0],
            "beside_cpu_s": now[1] - cpu[1],
        }
        print("RESULT " + json.dumps(result), flush=True)
spark.stop()
