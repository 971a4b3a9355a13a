"""Jobs whose completion time is predicted: `sizing.py split TABLE INTO`, or `sizing.py JOB DATA SIZE ITERATIONS`.

SIZE is in files of DATA, or in dozens of tasks."""
import sys
from pyspark.sql import SparkSession


def some(spark, data, size):
    """The first files, read by tasks of about a file each."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", "8m")
    return spark.read.parquet(*[f"{data}/part={number}" for number in range(size)])


def split(spark, table, into):
    parts = spark.read.parquet(table).selectExpr("*", "pmod(hash(l_orderkey), 16) AS part")
    parts.repartition(16, "part").write.partitionBy("part").parquet(into)


def query(spark, data, size, iterations):
    """An aggregation with a join and a sort, over and over."""
    some(spark, data, size).createOrReplaceTempView("lineitem")
    for _ in range(iterations):
        spark.sql("""SELECT a.l_suppkey, SUM(a.l_extendedprice * (1 - a.l_discount)) AS revenue, COUNT(*)
            FROM lineitem a JOIN (SELECT l_suppkey, MAX(l_shipdate) AS last FROM lineitem GROUP BY l_suppkey) b
            ON a.l_suppkey = b.l_suppkey AND a.l_shipdate < b.last
            GROUP BY a.l_suppkey ORDER BY revenue DESC""").collect()


def waiting(spark, data, size, iterations):
    """Tasks that wait, as for a service: slots beyond the machine's cores are as good as those of other machines.
    Every seventh task waits four times as long."""
    tasks = 12 * size
    sleep = "java_method('java.lang.Thread', 'sleep', CASE WHEN id % 7 = 3 THEN 480L ELSE 80L + id % 5 * 20 END)"
    for _ in range(iterations):
        spark.range(0, tasks, 1, tasks).selectExpr(sleep).write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    spark = SparkSession.builder.appName(sys.argv[1]).getOrCreate()
    if sys.argv[1] == "split":
        split(spark, *sys.argv[2:])
    else:
        job = {"query": query, "waiting": waiting}[sys.argv[1]]
        job(spark, sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    spark.stop()
