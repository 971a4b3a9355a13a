"""Writes TPC-DS data as Parquet, a file each table, and the 99 query texts as queries.json.

Arguments: scale factor, directory.
"""
import importlib.util
import json
import pathlib
import sys

import duckdb

scale, directory = float(sys.argv[1]), pathlib.Path(sys.argv[2])
package = pathlib.Path(importlib.util.find_spec("duckdb_extension_tpcds").origin).parent
(extension,) = package.rglob("tpcds.duckdb_extension")
connection = duckdb.connect()
connection.load_extension(str(extension))
connection.execute(f"CALL dsdgen(sf={scale})")
for (table,) in connection.sql("SHOW TABLES").fetchall():
    connection.execute(f"COPY {table} TO '{directory / table}.parquet' (FORMAT parquet)")
queries = connection.sql("SELECT query_nr, query FROM tpcds_queries()").fetchall()
texts = {f"q{number:02}": text.strip().rstrip(";") for number, text in queries}
(directory / "queries.json").write_text(json.dumps(texts, indent=1))
