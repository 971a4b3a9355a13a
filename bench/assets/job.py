"""A benchmark's job: runs the SQL statements it is asked for and answers what each took, as JSON lines.

Arguments: data directory, file of {"spin": bool}; with "spin": true a function
spin(value, rounds) is there, see Spin.java; with "marks": {"functions": [NAME], "mapped": SQL} functions mark_NAME and a view
mapped are there, see Marks.java, a table marked of MarkedTable.java and a Python function mark_Python; each answer has their CPU times; with
"async_profiler": {"library": path, "interval": "5ms", "into": directory, "kind": "collapsed" | "jfr"} each
query is sampled by it; with "flight_recorder": {"period_ms": 5, "into": directory} by the JDK's Flight Recorder.
UNFUSE_BENCH_SOCKET is where it asks for work: {"query": name, "sql": text, "round": n, "sink": format}, until the other side ends.
A round's CPU times are of the JVM, and of the profiler's processes beside it.
"""
import glob
import json
import os
import socket
import sys
import time

from pyspark.sql import SparkSession

TICK = os.sysconf("SC_CLK_TCK")
JVM = os.getppid()


def ticks(pid, ended_children=False):
    """CPU time of a process and of the children that it has waited for."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11 : 15 if ended_children else 13])


def text(path):
    with open(path) as file:
        return file.read()


SOCKET = os.environ["UNFUSE_BENCH_SOCKET"]


def cpu_seconds():
    """Of the JVM, and of its profiler's processes: named unfuse-…, forks of it, so with its environment. Samplers that
    have ended count as children of the manager."""
    beside = 0
    for path in glob.glob("/proc/[0-9]*"):
        try:
            if text(f"{path}/comm").startswith("unfuse-") and SOCKET in text(f"{path}/environ"):
                beside += ticks(path.split("/")[2], ended_children=True)
        except (FileNotFoundError, ProcessLookupError):
            pass  # ended meanwhile
    return ticks(JVM) / TICK, beside / TICK


spark = SparkSession.builder.getOrCreate()
with open(sys.argv[2]) as file:
    setup = json.load(file)
for path in sorted(glob.glob(sys.argv[1] + "/*.parquet")):
    spark.read.parquet(path).createOrReplaceTempView(os.path.basename(path)[: -len(".parquet")])

if setup["spin"]:
    spark.udf.registerJavaFunction("spin", "Spin", "long")
marks = setup.get("marks")
if marks:
    for name in marks["functions"]:
        if name == "Window":
            spark.udf.registerJavaUDAF(f"mark_{name}", f"marks.Marks${name}")
        else:
            spark.udf.registerJavaFunction(f"mark_{name}", f"marks.Marks${name}", "long")
    spark._jvm.marks.Marks.map(spark._jsparkSession, marks["mapped"], "mapped")
    spark.read.format("marks.MarkedTable").load().createOrReplaceTempView("marked")
    in_python = spark.sparkContext.accumulator(0.0)

    def mark_python(value):
        """About 50 µs of arithmetic; returns the value."""
        begin = time.thread_time()
        number = value
        for _ in range(400):
            number = (number ^ number >> 31) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        in_python.add(time.thread_time() - begin)
        return value

    spark.udf.register("mark_Python", mark_python, "long")
asked = setup.get("async_profiler")
if asked:
    sampler = spark._jvm.one.profiler.AsyncProfiler.getInstance(asked["library"])
recorded = setup.get("flight_recorder")


def recording():
    """A started recording of the JDK's own samples."""
    started = spark._jvm.jdk.jfr.Recording()
    period = spark._jvm.java.time.Duration.ofMillis(recorded["period_ms"])
    started.enable("jdk.ExecutionSample").withPeriod(period)
    started.start()
    return started


def spent():
    """CPU time of the marked functions since the last call, s."""
    seconds = dict(spark._jvm.marks.Marks.spent())
    seconds["Python"] = in_python.value
    in_python.value = 0.0
    return seconds


def run(name, sql, number, sink):
    spark.sparkContext.setJobDescription(f"{name} {number}")
    if asked:
        file = f"file={asked['into']}/{name}_{number}.{asked['kind']},{asked['kind']}"
        sampler.execute(f"start,event=cpu,interval={asked['interval']},{file}")
    flight = recording() if recorded else None
    cpu, wall = cpu_seconds(), time.time()
    try:
        spark.sql(sql).write.format(sink).mode("overwrite").save()
    except Exception as error:
        return {"refused": {"query": name, "reason": str(error).strip().split("\n")[0]}}
    now, wall = cpu_seconds(), time.time() - wall
    if asked:
        sampler.execute(f"stop,{file}")
    if flight:
        flight.stop()
        flight.dump(spark._jvm.java.io.File(f"{recorded['into']}/{name}_{number}.jfr").toPath())
        flight.close()
    return {
        "took": {
            "wall_s": wall,
            "jvm_cpu_s": now[0] - cpu[0],
            "beside_cpu_s": now[1] - cpu[1],
            "beside_before_s": cpu[1],
            "marks": spent() if marks else {},
        }
    }


connection = socket.socket(socket.AF_UNIX)
connection.connect(SOCKET)
with connection.makefile("rw") as talk:
    for line in talk:
        question = json.loads(line)
        took = run(question["query"], question["sql"], question["round"], question["sink"])
        talk.write(json.dumps(took) + "\n")
        talk.flush()
spark.stop()
