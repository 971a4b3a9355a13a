"""How good `unfuse what-if` is: changes that were predicted from one run, and then made. Prints docs/what-if.md's table.

    python3 tests/what_if.py SPARK TPCH WORK [ROUNDS]

SPARK is a directory with venv/bin/spark-submit, TPCH one with its tables, WORK one for profiles, which are used again.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPARK, TPCH, WORK = (Path(argument) for argument in sys.argv[1:4])
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 7
UNFUSE = ROOT / "target/release/unfuse"
WARM_UP = 2
"""Rounds that do not count: classes are loaded and compiled."""

# Name of the query, and of the one with the change; the change, `%` for the node with the most CPU time.
CHANGES = [
    ("project 8", "project 4", "operator:%=2x"),
    ("project 8", "project 2", "operator:%=4x"),
    ("project 4", "project 2", "operator:%=2x"),
    ("filter 6", "filter 3", "operator:%=2x"),
    ("filter 6", "filter 1", "operator:%=6x"),
    ("filter 3", "filter 1", "operator:%=3x"),
    ("skew as it is", "skew salted", "skew=0"),
    ("python 50", "python 10", "python=5x"),
    ("beside", "alone", "without-query=%"),
]


def profile(what, slots):
    """The profile of a run, which is made unless it is there."""
    place = WORK / f"{what}-{slots}"
    if not place.exists():
        environment = os.environ | {"PYSPARK_PYTHON": str(SPARK / "venv/bin/python")}
        job = [ROOT / "tests/programs/what_if.py", TPCH, ROOT / "bench/assets/tpch.sql", ROUNDS, what]
        submit = [SPARK / "venv/bin/spark-submit", "--master", f"local[{slots}]", "--driver-memory", "3g"]
        command = [UNFUSE, "run", "-o", place, "--", *submit, *job]
        subprocess.run([str(word) for word in command], check=True, env=environment, stdout=subprocess.DEVNULL)
    return place


def ask(*words):
    answer = subprocess.run([str(word) for word in [UNFUSE, *words, "--json"]], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)


def runs(place):
    """The runs of each query after the warm-up: id and seconds."""
    script = (
        "import duckdb, json, sys\n"
        "rows = duckdb.sql(f\"select execution, max(description), max(ended_ms) - min(started_ms) from '{sys.argv[1]}/executions/*.parquet' "
        "group by execution having max(error) is null order by execution\").fetchall()\n"
        "print(json.dumps(rows))"
    )
    found = subprocess.run([SPARK / "venv/bin/python", "-c", script, place], check=True, capture_output=True, text=True)
    named = {}
    for execution, name, ms in json.loads(found.stdout):
        # Without a description it is no query of the job's.
        if ms is not None and " at " not in name:
            named.setdefault(name, []).append((execution, ms / 1e3))
    return {name: times[WARM_UP:] for name, times in named.items() if len(times) > WARM_UP}


def median_run(times):
    return sorted(times, key=lambda run: run[1])[(len(times) - 1) // 2]


def hottest(place, query):
    """The node with the most CPU time in a query."""
    rows = [row for row in ask("top", place, "--query", query, "--limit", 1000, "--runs") if row["node_id"] is not None]
    return max(rows, key=lambda row: row["cpu_seconds"])["node_id"]


def row(name, change, place, query, measured_now, measured_then):
    """Predicts from one run, and compares with the median of the runs in which the change was made."""
    found = ask("what-if", place, change, "--query", query)
    then, low, high = (found["estimate"][key] for key in ["then_s", "then_low_s", "then_high_s"])
    error = then / measured_then - 1
    held = low <= measured_then <= high
    print(
        f"| {name} | `{change}` | {measured_now:.2f} | {then:.2f} ({low:.2f} to {high:.2f}) | {measured_then:.2f} | {100 * error:+.1f}% "
        f"| {'yes' if held else 'no'} |",
        flush=True,
    )
    return abs(error), held


def slots(results):
    of = {slots: runs(profile("tpch", slots)) for slots in [1, 2]}
    for now, then in [(2, 1), (1, 2)]:
        for name in of[now]:
            query, seconds = median_run(of[now][name])
            _, made = median_run(of[then][name])
            results.append(row(f"TPC-H {name}", f"slots={then}", profile("tpch", now), query, seconds, made))


def changes(results):
    place = profile("changes", 2)
    of = runs(place)
    for name, changed, change in CHANGES:
        query, seconds = median_run(of[name])
        _, made = median_run(of[changed])
        if change.startswith("operator"):
            change = change.replace("%", str(hottest(place, query)))
        elif change.startswith("without"):
            # The neighbour begins first.
            ran = [other for other, _ in of["neighbour"] if abs(other - query) == 1]
            change = change.replace("%", str(ran[0]))
        results.append(row(f"{name} → {changed}", change, place, query, seconds, made))


results = []
print("| query | change | measured, s | predicted, s | made, s | error | in the interval |")
print("|---|---|---|---|---|---|---|")
slots(results)
changes(results)
errors = sorted(error for error, _ in results)
held = sum(held for _, held in results)
print(
    f"\n{len(results)} changes: median error {100 * statistics.median(errors):.1f}%, 90th percentile "
    f"{100 * errors[int(0.9 * (len(errors) - 1))]:.1f}%, in the interval {held}"
)
