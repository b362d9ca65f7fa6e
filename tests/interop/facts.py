"""Runs the queries of docs/scale.md on files of `counterproof export facts`, and compares the answers of all engines.

Usage: facts.py SCALE_MD, in a folder that contains `facts/`. Spark is included if pyspark is installed.
"""

import importlib.util
import re
import sys

import datafusion
import duckdb


def blocks(document, heading, language):
    section = document.split(f"\n### {heading}\n", 1)[1].split("\n#", 1)[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.S)


def rows(records):
    """The rows with rounded numbers, because engines add in different orders."""
    plain = lambda value: None if value != value else round(value, 6) if isinstance(value, float) else value
    return [tuple(plain(value) for value in record) for record in records]


def records(frame):
    return rows(frame.astype(object).itertuples(index=False, name=None))


def check(name, found, expected):
    assert found == expected, f"{name}:\n{found}\nexpected:\n{expected}"
    print(f"    {name}: {len(found)} rows")


document = open(sys.argv[1], encoding="utf-8").read()

queries = blocks(document, "DuckDB", "sql")
failed, usage, tags = [rows(duckdb.sql(query).fetchall()) for query in queries]
assert failed and usage and tags, "a query of DuckDB has no rows"
print(f"    DuckDB {duckdb.__version__}: {len(failed)}, {len(usage)} and {len(tags)} rows")
described = duckdb.sql("select column_name, column_type from (describe from 'facts/*.parquet')").fetchall()
types = {"VARCHAR": "text", "VARCHAR[]": "list of text", "BIGINT": "int64", "TIMESTAMP WITH TIME ZONE": "timestamp"}
documented = re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", document.split("## Facts as Parquet")[1], re.M)
check("columns and types", [(name, types.get(type, type.lower())) for name, type in described], documented)

found = {}
exec(blocks(document, "pandas", "python")[0], found)
check("pandas, failed cases", records(found["failed"]), failed)
check("pandas, usage", records(found["usage"]), usage)
check("pandas, tags", records(found["tags"]), tags)

context = datafusion.SessionContext()
statements = [text for text in blocks(document, "DataFusion", "sql")[0].split(";") if text.strip()]
answers = [context.sql(text).to_pandas() for text in statements]
check("DataFusion, failed cases", records(answers[1]), failed)
check("DataFusion, tags", records(answers[2]), tags)

if importlib.util.find_spec("pyspark"):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    found = {"spark": builder.getOrCreate()}
    exec(blocks(document, "Spark", "python")[0], found)
    check("Spark, failed cases", rows(map(tuple, found["failed"].collect())), failed)
    check("Spark, tags", rows(map(tuple, found["tags"].collect())), tags)
