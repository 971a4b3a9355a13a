"""Python functions of Spark that compute; prints the CPU time of the workers and of their sampler. Argument: how many
seconds the workers are to compute together, about."""
import json
import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
# Rows and rounds of a function: about a second of CPU time.
ROWS, ROUNDS = 200, 20_000


class Model:
    """Calls of several kinds, in stacks of several depths."""

    def __init__(self, rounds):
        self.rounds = rounds

    def predict(self, value):
        return sum(self.terms(value)) + self.descend(value % 12, value)

    def terms(self, value):
        for i in range(self.rounds // 2):
            yield (value * 31 + i * i) % 1000003

    def descend(self, depth, value):
        if depth > 0:
            return self.descend(depth - 1, value)
        total = value
        for i in range(self.rounds):
            total = mix(total, i)
        return total


def mix(total, i):
    return (total * 31 + i * i) % 1000003 + (total ^ i) % 17


model = Model(ROUNDS)


@udf("long")
def predict(value):
    return model.predict(value)


def cpu_s(pid):
    """CPU time of the threads of a process, s."""
    threads = os.listdir(f"/proc/{pid}/task")
    reads = (open(f"/proc/{pid}/task/{thread}/schedstat").read() for thread in threads)
    return sum(int(text.split()[0]) for text in reads) / 1e9


def processes(jvm):
    """CPU time of the workers and of the sampler of this application, s."""
    workers, sampler = 0.0, None
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = open(f"/proc/{pid}/cmdline").read()
            if "pyspark.daemon" in command or "pyspark/daemon" in command:
                workers += cpu_s(pid)
            elif command.startswith("unfuse-python") and int(pid) > jvm:
                sampler = cpu_s(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return workers, sampler


jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()


def run():
    frame = spark.range(0, ROWS, 1, 2).select(predict("id"))
    frame.write.format("noop").mode("overwrite").save()


# Workers and their sampler start with the first query.
run()
first = processes(jvm)
while processes(jvm)[0] < first[0] + float(sys.argv[1]):
    run()
last = processes(jvm)
if last[1] is None:
    sys.exit("no sampler of Python workers runs; run `unfuse doctor`")
print(json.dumps({"workers_s": last[0] - first[0], "sampler_s": last[1] - (first[1] or 0.0)}))
