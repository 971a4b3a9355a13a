"""Follows records from a program's inputs to its results, where their tables outgrow one machine.

Usage: spark-submit job.py PROFILE_URI PLAN ANSWER

The same as propagate.rs, level by level, with the same answers. PLAN, made by spark.rs, says what grows with tasks: which attempts
count, what each read and made, and on which level. What grows with records are tables, joined and aggregated by Spark, which spills them.

A *way* to a record is a struct; the least of several is the slowest. `slow` is the end-to-end latency, negative; `root` is the input that
it begins with, `peak` the step that took most, and `base` the latency up to the last step. Beside it is its lineage: how many inputs.
"""

import json
import re
import sys

from pyspark import StorageLevel
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.utils import AnalysisException

TABLES = {
    "records_in": "task_key long, tap long, source int, position long, id long, ns long",
    "records_out": "task_key long, tap long, output int, position long, key long, whole long, ns long, alone_ns long, source int, first long, count long",
}
SOURCES = "task_key long, source int, shuffle_ns long, linked boolean, links array<int>"
TARGETS = "task_key long, output int, link int, combined boolean"
RECORD = "struct<task_key:bigint,source:int,position:bigint>"
WAY = f"struct<slow:bigint,root:{RECORD},peak:{RECORD},base:bigint,root_ns:bigint,peak_ns:bigint>"

# Lineage grows with each join of many with many. Whole numbers up to here are exact in doubles, whose sums do not overflow.
MOST = float(2**53)
ROWS_OF_PARTITION = 1_000_000


def main(profile, plan_file, answer_file):
    with open(plan_file, encoding="utf-8") as file:
        plan = json.load(file)
    spark = session(plan["rows"])
    try:
        answer = Job(spark, profile, plan).answer()
    finally:
        spark.stop()
    with open(answer_file, "w", encoding="utf-8") as file:
        json.dump(answer, file)


def session(rows):
    """Partitions by how much there is, unless the user says otherwise."""
    builder = SparkSession.builder.appName("unfuse skew")
    # Damaged numbers and segments must not end the job.
    builder = builder.config("spark.sql.ansi.enabled", "false").config("spark.sql.files.ignoreCorruptFiles", "true")
    spark = builder.getOrCreate()
    context = spark.sparkContext
    if not context.getConf().contains("spark.sql.shuffle.partitions"):
        partitions = max(context.defaultParallelism, rows // ROWS_OF_PARTITION + 1)
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    checkpoints = context.getConf().get("spark.checkpoint.dir")
    if checkpoints:
        context.setCheckpointDir(checkpoints)
    return spark


class Job:
    def __init__(self, spark, profile, plan):
        self.spark = spark
        self.profile = profile
        self.plan = plan
        self.tables = {name: self.table(name) for name in TABLES}
        # What was made on lower levels and is read on higher ones, each with its links.
        self.on_the_way = []
        self.inputs = self.results = self.unlinked = self.read = 0
        self.slowest = []

    def answer(self):
        for level in sorted({target["level"] for target in self.plan["targets"]}):
            self.level(level)
        self.slowest.sort(key=lambda row: (row.way.slow, row.task_key, row.output, row.position))
        slowest = [slow(row) for row in self.slowest[: self.plan["top"]]]
        named = self.plan["records"] + [row[name] for row in slowest for name in ("root", "peak")]
        wanted = self.frame(named, "task_key long, source int, position long").distinct()
        records = self.tables["records_in"].join(F.broadcast(wanted), ["task_key", "source", "position"])
        return {
            "results": self.results,
            "inputs": self.inputs,
            "unlinked": self.unlinked,
            "read": self.read,
            "damaged": sum(damaged(table) for table in self.tables.values()),
            "slowest": slowest,
            "records": [row.asDict() for row in records.collect()],
        }

    def table(self, name):
        # A path is a pattern to Spark.
        path = re.sub(r"([\\{}\[\]*?])", r"\\\1", f"{self.profile}/{name}")
        reader = self.spark.read.schema(TABLES[name]).option("pathGlobFilter", "*.parquet")
        try:
            table = reader.parquet(path)
            # Profiles from before 2026-11-26 have the key under its old name.
            return table.withColumn("task_key", F.coalesce("task_key", "tap")).drop("tap")
        except AnalysisException as error:
            # Nothing was written of it.
            if "PATH_NOT_FOUND" in str(error):
                return self.frame([], TABLES[name]).drop("tap")
            raise

    def frame(self, rows, schema):
        return self.spark.createDataFrame(rows, schema, verifySchema=False)

    def level(self, level):
        """Follows records through the tasks of a level."""
        of_level = lambda rows: [row for row in self.plan[rows] if row["level"] == level]
        sources, targets = of_level("sources"), of_level("targets")
        records, kept = self.records(sources)
        made = self.made(self.tables["records_out"].join(F.broadcast(self.frame(targets, TARGETS)), ["task_key", "output"]), records)
        made.persist(StorageLevel.DISK_ONLY)
        if any(target["link"] is None for target in targets):
            results = made.filter("link is null")
            self.results += results.count()
            ordered = results.orderBy("way.slow", "task_key", "output", "position")
            self.slowest += ordered.limit(self.plan["top"]).collect()
        links = {target["link"] for target in targets} - {None}
        if links:
            # From here on as if it had been read: plans would double with each level.
            sent = self.sent(made.filter("link is not null"))
            reliable = self.spark.sparkContext.getCheckpointDir()
            self.on_the_way.append((links, sent.checkpoint() if reliable else sent.localCheckpoint()))
        for frame in [made, *kept]:
            frame.unpersist()

    def records(self, sources):
        """What the tasks of a level read, each record with the slowest way to it."""
        read = self.tables["records_in"].join(F.broadcast(self.frame(sources, SOURCES)), ["task_key", "source"])
        read = read.withColumn("ns", F.greatest("ns", F.lit(0)))
        named = F.col("linked") & (F.col("id") != 0) & (F.size("links") > 0)
        columns = ["task_key", "source", "position", "ns", "shuffle_ns", "linked"]
        first = read.filter(~named).select(
            *columns, F.lit(None).cast(WAY).alias("before"), F.lit(1).cast("long").alias("count"), F.lit(1.0).alias("lineage")
        )
        links = {link for source in sources for link in source["links"]}
        before = [sent for written, sent in self.on_the_way if written & links]
        kept = []
        records = first
        if links:
            read = read.filter(named).withColumn("link", F.explode("links"))
            found = joined(read, before) if before else read.select("*", *no_way())
            # Of a source of several shuffles, each may have something.
            found = found.groupBy(*columns).agg(
                F.min("way").alias("before"),
                F.coalesce(F.sum("count"), F.lit(1)).alias("count"),
                lineage().alias("lineage"),
            )
            found.persist(StorageLevel.DISK_ONLY)
            kept.append(found)
            records = first.unionByName(found)
        for row in records.groupBy("linked", F.col("before").isNull().alias("first")).count().collect():
            self.read += row["count"]
            if not row["linked"]:
                self.inputs += row["count"]
            elif row["first"]:
                self.unlinked += row["count"]
        return with_shuffle(records), kept

    def made(self, rows, records):
        """What the tasks of a level made, each record once, with the slowest way to it."""
        alike = Window.partitionBy("task_key", "output").orderBy("position", "source")
        same = [F.lag(name).over(alike) == F.col(name) for name in ("count", "source", "first")]
        rows = rows.withColumn("again", F.coalesce(((F.col("count") == 1) & same[0] & same[1] & same[2]).cast("int"), F.lit(0)))
        # Into how many a record went that became several.
        several = Window.partitionBy("task_key", "output", "source", "first")
        rows = rows.withColumn("several", 1 + F.sum("again").over(several))
        rows = rows.join(ranges(rows, records), ["task_key", "source", "first", "count"])
        # One of several: its time is that since the one before it, and the shuffle's is shared.
        at = F.struct("task_key", "source", F.col("first").alias("position"))
        one_of = then(F.col("before"), at, F.greatest("ns", F.lit(0)) + F.expr("shuffle_ns div several"))
        # Reading them is not the time of what is made of all of them: it would count as often as there are such records.
        alone = F.greatest(F.coalesce("alone_ns", F.lit(0)), F.lit(0))
        by_itself = F.struct("task_key", "source", F.lit(-1).cast("long").alias("position"))
        all_of = way(
            F.col("way.slow") - alone, "way.root", F.when(alone > F.col("way.peak_ns"), by_itself).otherwise(F.col("way.peak")),
            -F.col("way.slow"), "way.root_ns", F.greatest(alone, F.col("way.peak_ns")),
        )
        chosen = F.when(F.col("several") > 1, one_of).when(F.col("count") > 1, all_of).otherwise(F.col("way"))
        by = ["task_key", "output", "position", "key", "whole", "link", "combined"]
        return rows.withColumn("way", chosen).groupBy(*by).agg(F.min("way").alias("way"), lineage().alias("lineage"))

    def sent(self, made):
        """What goes into shuffles and caches, with what identifies it there."""
        ids = F.explode(F.array("key", "whole")).alias("id")
        single = made.filter("not combined").select("link", ids, "way", "lineage")
        # Values of a key that a task merges before they are written: the functions of all, behind the slowest.
        merged = made.filter("combined").groupBy("link", "task_key", "output", F.col("key").alias("id")).agg(
            F.max("way.base").alias("base"),
            F.sum(-F.col("way.slow") - F.col("way.base")).alias("own"),
            F.min("way").alias("way"),
            lineage().alias("lineage"),
        )
        all_of = way(-(F.col("base") + F.col("own")), "way.root", "way.peak", "base", "way.root_ns", "way.peak_ns")
        merged = merged.select("link", "id", all_of.alias("way"), "lineage")
        together = single.unionByName(merged).filter("id != 0").withColumn("count", F.lit(1).cast("long"))
        return met(together)


def met(sent):
    """The records of one id: the slowest way to any, and how many were written."""
    return sent.groupBy("link", "id").agg(F.min("way").alias("way"), F.sum("count").alias("count"), lineage().alias("lineage"))


def joined(read, before):
    sent = before[0]
    for more in before[1:]:
        sent = sent.unionByName(more)
    # A shuffle may have been written on several levels.
    sent = met(sent) if len(before) > 1 else sent
    return read.join(sent, ["link", "id"], "left")


def no_way():
    return [F.lit(None).cast(WAY).alias("way"), F.lit(None).cast("long").alias("count"), F.lit(None).cast("double").alias("lineage")]


def with_shuffle(records):
    """Records with the shuffle's latency in proportion to how many were written for each, and the way up to this stage's end."""
    of_source = Window.partitionBy("task_key", "source")
    share = F.col("shuffle_ns").cast("double") * F.col("count") / F.sum("count").over(of_source)
    records = records.withColumn("shuffle_ns", F.round(share).cast("long"))
    at = F.struct("task_key", "source", "position")
    return records.withColumn("way", then(F.col("before"), at, F.col("ns") + F.col("shuffle_ns")))


def ranges(rows, records):
    """The slowest way over the records of each range. Ranges of a source are apart or the same: a task reads it once."""
    nothing = F.lit(None)
    marks = rows.select(
        "task_key", "source", F.col("first").alias("position"), F.lit(0).alias("is_record"), F.struct("first", "count").alias("range"),
        nothing.cast(WAY).alias("before"), nothing.cast(WAY).alias("way"),
        nothing.cast("long").alias("shuffle_ns"), nothing.cast("double").alias("lineage"),
    )
    records = records.select(
        "task_key", "source", "position", F.lit(1).alias("is_record"), nothing.cast("struct<first:bigint,count:bigint>").alias("range"),
        "before", "way", "shuffle_ns", "lineage",
    )
    so_far = Window.partitionBy("task_key", "source").orderBy("position", "is_record")
    so_far = so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    both = marks.unionByName(records).withColumn("range", F.last("range", ignorenulls=True).over(so_far))
    inside = both.filter("is_record = 1 and position < range.first + range.count")
    inside = inside.groupBy("task_key", "source", F.col("range.first").alias("first"), F.col("range.count").alias("count"))
    found = inside.agg(
        F.min("way").alias("way"),
        lineage().alias("lineage"),
        # Asked of ranges of one record only.
        F.min("before").alias("before"),
        F.min("shuffle_ns").alias("shuffle_ns"),
        F.count(F.lit(1)).alias("there"),
    )
    return found.filter("there = count").drop("there")


def then(before, at, own):
    """The way with one more step, or one that begins here."""
    further = own > before["peak_ns"]
    step = way(
        before["slow"] - own, before["root"], F.when(further, at).otherwise(before["peak"]),
        -before["slow"], before["root_ns"], F.greatest(own, before["peak_ns"]),
    )
    start = way(-own, at, at, F.lit(0).cast("long"), own, own)
    return F.when(before.isNull(), start).otherwise(step)


def way(*fields):
    names = ("slow", "root", "peak", "base", "root_ns", "peak_ns")
    column = lambda field: F.col(field) if isinstance(field, str) else field
    return F.struct(*[column(field).alias(name) for name, field in zip(names, fields)])


def lineage():
    # What came from nothing that is known is an input.
    return F.least(F.coalesce(F.sum("lineage"), F.lit(1.0)), F.lit(MOST))


def slow(row):
    way = row.way
    return {
        "task_key": row.task_key,
        "output": row.output,
        "position": row.position,
        "base_ns": way.base,
        "own_ns": -way.slow - way.base,
        "root": way.root.asDict(),
        "root_ns": way.root_ns,
        "peak": way.peak.asDict(),
        "peak_ns": way.peak_ns,
        "lineage": int(row.lineage),
    }


def damaged(table):
    """Segments that cannot be read; no segment is empty."""
    files = len(table.inputFiles())
    return files - table.select(F.input_file_name()).distinct().count() if files else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
