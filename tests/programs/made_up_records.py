"""Makes up a profile with records of all kinds, to compare programs that follow records. Arguments: the profile directory, a seed.

Times have few values, so that many paths take equally long. Keys repeat, some records have no origin, some attempts are repeated.
"""
import json
import os
import random
import sys
import tempfile

import duckdb

profile, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)

TYPES = {
    "tasks": "app varchar, stage int, attempt int, task bigint, index int, executor varchar, host varchar, launched bigint,"
    " finished bigint, status varchar, run_ms bigint",
    "record_sources": "app varchar, stage int, attempt int, task bigint, partition int, task_key bigint, source int, kind varchar,"
    ' "by" varchar, links varchar[], rdd int, name varchar, source_partition int, count bigint, read_ns bigint, timed boolean,'
    " output int, files varchar[], file_starts bigint[], file_positions bigint[]",
    "record_targets": "app varchar, stage int, attempt int, task bigint, partition int, task_key bigint, output int, link varchar,"
    " combined boolean, count bigint, write_ns bigint, unowned_ns bigint",
    "records_in": "task_key bigint, source int, position bigint, id bigint, ns bigint",
    "records_out": "task_key bigint, output int, position bigint, key bigint, whole bigint, ns bigint, alone_ns bigint, source int, first bigint, count bigint",
    "record_texts": "task_key bigint, source int, output int, position bigint, ns bigint, began_ns bigint, ended_ns bigint, text varchar, cut boolean",
}
rows = {table: [] for table in TYPES}
tasks = 0


def key():
    return random.randint(1, 60)


def ns():
    return random.choice([0, 1, 1, 2, 3, 3, 7, 50]) * 1_000_001


def source(kind, links, by, output=-1):
    return {"kind": kind, "links": links, "by": by, "output": output}


def target(link, combined=False, shape="map"):
    return {"link": link, "combined": combined, "shape": shape}


def task(app, stage, partition, sources, targets, attempt=0):
    global tasks
    tasks += 1
    task_key = random.randint(-(2**63), 2**63 - 1)
    of = {"app": app, "stage": stage, "attempt": attempt, "task": tasks}
    rows["tasks"].append(
        dict(of, index=partition, executor="1", host="h", launched=1000, finished=3000, status="SUCCESS", run_ms=2000)
    )
    of = dict(of, partition=partition, task_key=task_key)
    counts = []
    for number, what in enumerate(sources):
        count = random.randint(0, 250)
        counts.append(count)
        rows["record_sources"].append(
            dict(of, source=number, rdd=number, name=f"{what['kind']}RDD[{number}] at ", source_partition=partition, count=count,
                 read_ns=random.randint(0, 10**9), timed=True, files=[], file_starts=[], file_positions=[], **what)
        )
        for position in range(count):
            if what["kind"] == "file":
                read = 0 if stage % 2 else position * 10
            elif what["by"] == "position":
                read = random.choice([0, 5000 + random.randint(0, 400)])
            else:
                # Some ids belong to no record of an earlier stage.
                read = random.choice([0, key(), key(), key(), 999])
            rows["records_in"].append({"task_key": task_key, "source": number, "position": position, "id": read, "ns": ns()})
    for number, what in enumerate(targets):
        last = number == len(targets) - 1
        own = [at for at, each in enumerate(sources) if each["output"] == number or (each["output"] < 0 and last)]
        made = outputs(task_key, number, what, {at: counts[at] for at in own}, partition)
        rows["record_targets"].append(
            dict(of, output=number, link=what["link"], combined=what["combined"], count=made, write_ns=5, unowned_ns=7)
        )
    for _ in range(3):
        if counts and counts[0]:
            position = random.randrange(counts[0])
            rows["record_texts"].append(
                {"task_key": task_key, "source": 0, "output": -1, "position": position, "ns": ns(), "began_ns": 1, "ended_ns": 2,
                 "text": f"text {task_key} {position}", "cut": False}
            )


def outputs(task_key, number, what, counts, partition):
    """Each output comes from the records read since the previous output, of each source; without new ones, from the same records."""
    seen, ranges, made = dict.fromkeys(counts, 0), {}, 0
    again = False
    while any(seen[at] < count for at, count in counts.items()) or (made and random.random() < 0.8):
        again = True
        for at, count in counts.items():
            if what["shape"] == "all":
                step = count
            elif what["shape"] == "flat":
                step = random.choice([0, 0, 1, 1, 1, 3])
            else:
                step = 1
            step = min(step, count - seen[at])
            if step:
                ranges[at] = (seen[at], step)
                seen[at] += step
                again = False
        if not ranges:
            continue
        ids = {"key": key(), "whole": 0 if what["combined"] else 100 + key(), "ns": ns(), "alone_ns": ns() if again else 0}
        if what["link"].startswith("cache"):
            ids.update(key=0, whole=5000 + 100 * partition + made)
        for at, (first, count) in sorted(ranges.items()):
            rows["records_out"].append(
                dict(ids, task_key=task_key, output=number, position=made, source=at, first=first, count=count)
            )
        made += 1
    return made


for app in ("app-1", "app-2"):
    for partition in range(4):
        task(app, 0, partition, [source("file", [], "position")], [target("shuffle 0", combined=True)])
    for partition in range(3):
        task(app, 1, partition, [source("file", [], "position")], [target("shuffle 1", shape="flat")])
    both = source("shuffle", ["shuffle 0", "shuffle 1"], "key", output=0)
    for partition in range(3):
        # Some partitions were run again.
        for attempt in range(1 + partition % 2):
            task(app, 2, partition, [both, source("other", [], "position", output=0), source("shuffle", ["shuffle 1"], "whole")],
                 [target("cache 9", shape="flat"), target("result", shape="flat")], attempt)
    cached = source("cached", ["cache 9"], "position")
    for partition in range(4):
        task(app, 3, partition, [cached], [target("shuffle 2", shape=("all", "flat")[partition % 2], combined=partition > 1)])
    # As in a union, some tasks of the stage read records of a lower level than others.
    for partition in range(4):
        read = source("shuffle", ["shuffle 2"], "key") if partition % 2 else source("file", [], "position")
        task(app, 4, partition, [read, source("shuffle", ["shuffle 1", "shuffle 77"], "whole")], [target("shuffle 3")])
    for partition in range(3):
        task(app, 5, partition, [source("shuffle", ["shuffle 3"], "whole")], [target("result", shape="flat")])

os.makedirs(profile)
with open(f"{profile}/unfuse.json", "w") as file:
    json.dump({"format": 1, "writer": "made up"}, file)
for table, types in TYPES.items():
    os.makedirs(f"{profile}/{table}")
    # Segments may end between any two rows.
    size = len(rows[table]) // 4 + 1
    for number in range(4):
        part = rows[table][number * size : (number + 1) * size]
        if not part:
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.writelines(json.dumps(row) + "\n" for row in part)
            file.flush()
            # Half of the segments are as before 2026-11-26, when the key had another name.
            select = "*" if number % 2 or "task_key" not in types else "* exclude (task_key), task_key as tap"
            columns = ", ".join(f"{name}: '{kind}'" for name, kind in (column.split() for column in types.split(", ")))
            duckdb.sql(
                f"copy (select {select} from read_json('{file.name}', format='newline_delimited', columns={{{columns}}}))"
                f" to '{profile}/{table}/made-1-{number:05}.parquet' (format parquet)"
            )
