"""Profile Spark from Python: which SQL operator, and which line of generated code, uses the time.

In a program:

    import unfuse
    from pyspark.sql import SparkSession

    spark = unfuse.enable(SparkSession.builder).getOrCreate()

Then `unfuse top DIR` and `unfuse report DIR` show the profile; `unfuse.profile_dir()` is the directory.

In a notebook, `%%unfuse` as the first line of a cell shows where the time of the cell's query went.
"""

from unfuse._notebook import load_ipython_extension
from unfuse._session import enable, profile_dir

__all__ = ["enable", "load_ipython_extension", "profile_dir"]
