"""Plans of every shape, each under its own job description. Argument: the TPC-H data."""
import glob
import os
import sys
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
# A stream writes its state once for each partition of each batch, so few partitions save time.
spark.conf.set("spark.sql.shuffle.partitions", "8")
for path in glob.glob(sys.argv[1] + "/*.parquet"):
    spark.read.parquet(path).createOrReplaceTempView(os.path.basename(path)[: -len(".parquet")])


def run(name, frame):
    spark.sparkContext.setJobDescription(name)
    frame.write.format("noop").mode("overwrite").save()


PRIORITIES = "SELECT o_orderpriority, sum(o_totalprice) AS total FROM orders GROUP BY o_orderpriority"
run("again", spark.sql(PRIORITIES))
run("again", spark.sql(PRIORITIES))
run(
    "subquery",
    spark.sql(
        "SELECT l_suppkey, sum(l_quantity) FROM lineitem"
        " WHERE l_extendedprice > (SELECT avg(l_extendedprice) FROM lineitem) GROUP BY l_suppkey"
    ),
)
totals = "SELECT l_orderkey, sum(l_quantity) AS q FROM lineitem GROUP BY l_orderkey"
run(
    "reused",
    spark.sql(f"SELECT count(*) FROM ({totals}) a JOIN ({totals}) b ON a.l_orderkey = b.l_orderkey AND a.q = b.q"),
)
# Each operator calls functions that no other operator calls.
MARKED = """
    SELECT k, sum(crc32(cast(repeat(l_comment, 200) AS binary))) FROM (
        SELECT levenshtein(l_comment, l_shipinstruct) AS k, l_comment
        FROM lineitem JOIN supplier ON l_suppkey = s_suppkey AND md5(concat(l_comment, s_phone)) <> ''
        WHERE l_orderkey % 4 = 0 AND sha2(l_comment, 256) <> '')
    GROUP BY k"""
run("marked", spark.sql(MARKED))
run(
    "broadcast",
    spark.sql("SELECT /*+ BROADCAST(orders) */ o_clerk, sum(l_tax) FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY o_clerk"),
)
spark.sparkContext.setJobDescription("results")
spark.sql("SELECT l_orderkey, l_comment FROM lineitem WHERE l_orderkey % 8 = 0").collect()
spark.sparkContext.setJobDescription("fill")
spark.sql("CACHE TABLE comments AS SELECT l_returnflag, l_comment, l_shipdate, l_quantity FROM lineitem")
run("cached", spark.sql("SELECT l_returnflag, max(l_comment), max(l_shipdate), sum(l_quantity) FROM comments GROUP BY l_returnflag"))
spark.sparkContext.setJobDescription("fill")
spark.sql("UNCACHE TABLE comments")
spark.conf.set("spark.sql.codegen.wholeStage", "false")
run("unfused", spark.sql(MARKED))
run("interpreted", spark.sql("SELECT l_suppkey, sum(l_tax) FROM lineitem WHERE l_quantity > 10 GROUP BY l_suppkey"))
spark.conf.set("spark.sql.codegen.wholeStage", "true")
spins = udf(lambda key: sum(range(key % 200)), "long")
run("python", spark.sql("SELECT o_orderkey FROM orders WHERE o_orderkey % 5 = 0").select(spins("o_orderkey")))
spark.sparkContext.setJobDescription("rdd")
spark.sparkContext.parallelize(range(400_000), 2).map(lambda x: (x % 100, sum(range(x % 100)))).reduceByKey(max).count()

spark.sparkContext.setJobDescription(None)
with tempfile.TemporaryDirectory() as files:
    spark.sql("SELECT l_suppkey, l_quantity FROM lineitem").repartition(3).write.parquet(files + "/in")
    (
        spark.readStream.schema("l_suppkey long, l_quantity decimal(15,2)")
        .option("maxFilesPerTrigger", 1)
        .parquet(files + "/in")
        .groupBy("l_suppkey")
        .sum("l_quantity")
        .writeStream.queryName("stream")
        .format("noop")
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
spark.stop()
