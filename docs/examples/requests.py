"""Asks a service for each line of text files, 50 ms a request: `requests.py DIR FILES ITERATIONS` or `requests.py make DIR`."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

REQUEST = "java_method('java.lang.Thread', 'sleep', 50L + length(value) % 3 * 10)"

if sys.argv[1] == "make":
    Path(sys.argv[2]).mkdir()
    for number in range(48):
        lines = [f"{line:06}" + "x" * (100_000 + line * 7) + "\n" for line in range(10)]
        Path(sys.argv[2], f"{number:02}.txt").write_text("".join(lines))
    sys.exit()

folder, files, iterations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
spark = SparkSession.builder.appName("requests").getOrCreate()
spark.conf.set("spark.sql.files.maxPartitionBytes", "1m")
spark.conf.set("spark.sql.files.openCostInBytes", "1m")
for _ in range(iterations):
    lines = spark.read.text([f"{folder}/{number:02}.txt" for number in range(files)])
    lines.selectExpr(REQUEST).write.format("noop").mode("overwrite").save()
spark.stop()
