"""Slow lines in Python workers. Arguments: rows and rounds of each function, and `pandas` for those that need it."""
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

ROWS, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
numbers = spark.range(0, ROWS, 1, 2)


def spin(value):
    total = value
    for i in range(ROUNDS):
        total = (total * 31 + i * i) % 1000003 + (total ^ i) % 17  # slow: all
    return total


@udf("long")
def plain(value):
    return spin(value) + 1


@udf("long")
def other(value):
    return sum([i * i % 1000003 for i in range(ROUNDS)])  # slow: other


def run(name, frame):
    spark.sparkContext.setJobDescription(name)
    frame.write.format("noop").mode("overwrite").save()


# The workers import what they need.
run("warm", spark.range(0, 4, 1, 2).select(plain("id")))
run("plain", numbers.select(plain("id")))
run("two", numbers.select(plain("id").alias("a"), other("id").alias("b")))

measured = spark.sparkContext.accumulator(0.0)


def partition(values):
    began = time.process_time()
    for value in values:
        yield spin(value)
    measured.add(time.process_time() - began)


spark.sparkContext.setJobDescription("rdd")
spark.sparkContext.parallelize(range(ROWS), 2).mapPartitions(partition).count()
print("measured", measured.value)

if "pandas" in sys.argv:
    import pandas
    from pyspark.sql.functions import pandas_udf

    @pandas_udf("long")
    def vectors(values: pandas.Series) -> pandas.Series:
        return values.apply(spin)

    def batches(frames):
        for frame in frames:
            yield frame.assign(id=[spin(value) for value in frame["id"]])

    def groups(frame):
        return frame.assign(id=[spin(value) for value in frame["id"]])

    run("pandas", numbers.select(vectors("id")))
    run("map", numbers.mapInPandas(batches, "id long"))
    run("apply", numbers.groupBy((numbers.id % 4).alias("k")).applyInPandas(groups, "id long"))
    # Both in one stage: each worker's time is its own operator's.
    run("chain", numbers.select(vectors("id").alias("id")).mapInPandas(batches, "id long"))
