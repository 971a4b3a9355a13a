"""Functions in Python, over an RDD and over a DataFrame."""
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.appName("unfuse test").getOrCreate()
pairs = spark.sparkContext.parallelize(range(20_000), 4).map(lambda number: (number % 10, 1))
print(pairs.reduceByKey(lambda a, b: a + b, 2).collect())
double = udf(lambda number: 2 * number, "long")
print(spark.range(20_000).select(double("id").alias("twice")).where("twice > 100").count())
spark.stop()
