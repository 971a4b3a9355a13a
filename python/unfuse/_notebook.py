"""The magic `%%unfuse`: runs a cell, and shows where the time of its queries went."""

import sys
import time
from datetime import datetime, timezone

from unfuse import _program, _session
from unfuse._answer import CellAnswer

# A profile keeps samples in windows of up to 5 s, and other JVMs write them every 5 s.
WINDOW_S = 5
# How many queries of a cell are looked at.
MOST_QUERIES = 100


def load_ipython_extension(shell):
    """What `%load_ext unfuse` calls."""
    shell.register_magic_function(cell, "cell", "unfuse")


def register():
    """Makes the magic known if this is a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        load_ipython_extension(shell)


def cell(line, source):
    """%%unfuse [N]

    Runs the cell and shows where the time of its queries went: why the longest took so long, and its plan with the
    cost of each operator. N is the number of queries to show, 1 by default.
    """
    from IPython import get_ipython
    from IPython.core.error import UsageError
    from IPython.display import display

    text = line.strip() or "1"
    if not text.isdigit() or int(text) == 0:
        raise UsageError(f"%%unfuse takes the number of queries to show, not {text!r}")
    started = time.time()
    # Shows what the cell prints, and the error if it fails.
    get_ipython().run_cell(source)
    try:
        for answer in _answers(started, int(text)):
            display(answer)
    except (_NoAnswer, _program.ProgramError) as reason:
        print(f"unfuse: {reason}", file=sys.stderr)


class _NoAnswer(Exception):
    """Why a cell has no answer."""


def _answers(started, limit):
    """The answers for the costliest queries since a moment, seconds since the epoch."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        raise _NoAnswer("there is no Spark session; make one with unfuse.enable(SparkSession.builder).getOrCreate()")
    directory = _session.profile_dir()
    if directory is None:
        raise _NoAnswer(
            "this session is not profiled; restart the kernel and call unfuse.enable before the session starts"
        )
    if ":/" in directory:
        raise _NoAnswer(f"{directory} is complete when Spark ends; then: unfuse report {directory}")
    _deliver(spark)
    since = datetime.fromtimestamp(int(started) - WINDOW_S, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    plans = _program.answer("plan", directory, "--since", since, "--limit", str(MOST_QUERIES))
    app = spark.sparkContext.applicationId
    # The clock of Spark's events counts whole milliseconds.
    ours = [plan for plan in plans if plan["app"] == app and (plan["started_ms"] or 0) >= int(started * 1000)]
    if not ours:
        raise _NoAnswer("the cell ran no query")
    return [CellAnswer.read(directory, plan, len(ours)) for plan in ours[:limit]]


def _deliver(spark):
    """Has the driver write what it recorded; waits for executors that are other JVMs."""
    context = spark.sparkContext
    try:
        # The end of the last query may still be in Spark's queue of events.
        context._jsc.sc().listenerBus().waitUntilEmpty()
        context._jvm.io.unfuse.spark.common.Agent.deliver(2000, False)
        is_local = context.master.startswith("local") and not context.master.startswith("local-cluster")
    except Exception:
        is_local = False
    if not is_local:
        time.sleep(WINDOW_S + 1)
