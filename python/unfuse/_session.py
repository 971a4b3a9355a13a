"""Adds the profiler to the configuration of a Spark session."""

import os
import sys
import time
from pathlib import Path

PLUGIN = "io.unfuse.spark.UnfusePlugin"
# In the wheel beside this file.
JAR = Path(__file__).with_name("unfuse-spark.jar")

# The profile of this process's JVM. The agent is loaded once, so later sessions write to the same directory.
_dir = None


def enable(builder=None, *, dir=None, **options):
    """Lets the session that a builder makes be profiled, and returns the builder.

    Call it before the session starts. It changes nothing but the settings `spark.jars`, `spark.plugins` and
    `spark.unfuse.*`. If profiling is not possible, one line on standard error says why, and the builder stays as it is.

    Args:
        builder: a `SparkSession.Builder`; by default a new one.
        dir: the directory of the profile, or a URI such as `hdfs://…`; by default a new directory in
            `unfuse-profile`.
        **options: options of the agent, such as `rate=50` or `keep="2GB"` (`unfuse help agent` lists them).
    """
    from pyspark.sql import SparkSession

    global _dir
    if builder is None:
        builder = SparkSession.builder
    configured = _configured(builder)
    try:
        _check(SparkSession, configured)
        _add_to_running_jvm()
    except _NotPossible as reason:
        _say(f"not profiling: {reason}")
        return builder
    if _dir is None:
        _dir = _absolute(dir or os.path.join("unfuse-profile", time.strftime("%Y%m%d-%H%M%S")))
    elif dir is not None and _absolute(dir) != _dir:
        _say(f"this process has a profile already, which goes on: {_dir}")
    builder.config("spark.jars", _appended(configured("spark.jars"), str(JAR)))
    builder.config("spark.plugins", _appended(configured("spark.plugins"), PLUGIN))
    builder.config("spark.unfuse.dir", _dir)
    for name, value in options.items():
        builder.config(f"spark.unfuse.{name}", _text(value))
    from unfuse._notebook import register

    register()
    return builder


def profile_dir():
    """The profile that sessions of this process write to; None before `enable`."""
    return _dir


class _NotPossible(Exception):
    """Why a session cannot be profiled."""


def _check(session, configured):
    """Checks what can be known before the session starts."""
    if not JAR.is_file():
        raise _NotPossible(f"{JAR} is missing; install the package unfuse again")
    if configured("spark.remote") or os.environ.get("SPARK_REMOTE"):
        raise _NotPossible(
            "this is a client of Spark Connect, and the queries run in the server; start the server with "
            f"--jars {JAR} --conf spark.plugins={PLUGIN}"
        )
    if session.getActiveSession() is not None:
        raise _NotPossible(
            "a session is running already, and Spark loads plugins when it starts; call unfuse.enable before"
        )


def _add_to_running_jvm():
    """A JVM that runs already started without the jar, and `spark.jars` only reaches its executors."""
    jvm = _running_jvm()
    if jvm is None:
        return
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        loader.addURL(jvm.java.io.File(str(JAR)).toURI().toURL())
    except Exception as error:
        raise _NotPossible(f"the JVM of Spark is running already; start it with --jars {JAR}") from error


def _running_jvm():
    """The JVM of Spark if it runs already: an earlier session started it, or spark-submit."""
    from pyspark import SparkContext

    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    SparkContext._ensure_initialized()
    return SparkContext._jvm


def _configured(builder):
    """A function from a setting's name to its value in the builder or of spark-submit, else None."""
    jvm = _running_jvm() if "PYSPARK_GATEWAY_PORT" in os.environ else None

    def value(name):
        known = getattr(builder, "_options", {}).get(name)
        if known is None and jvm is not None:
            # spark-submit passes settings as system properties.
            known = jvm.java.lang.System.getProperty(name)
        return known

    return value


def _appended(values, value):
    """A list with commas between its values, and one more if it is not there."""
    known = [one for one in (values or "").split(",") if one]
    return ",".join(known if value in known else [*known, value])


def _absolute(directory):
    directory = os.fspath(directory)
    return directory if ":/" in directory else os.path.abspath(directory)


def _text(value):
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _say(line):
    print(f"unfuse: {line}", file=sys.stderr)
