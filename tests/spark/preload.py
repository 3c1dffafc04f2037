"""Imports what Spark's Python workers use in the daemon whose forks they are: none imports it again."""

import importlib
import sys

USED = ["lonnymq.spark.source", "pyarrow.compute"]
# What tasks use, of which there are more than of all other kinds of workers.
USED_BY_TASKS = ["pandas", "pyarrow.parquet", "lonnymq.pipeline.lake.files"]

worker = sys.argv[1]
for name in [worker, *USED, *(USED_BY_TASKS if worker == "pyspark.worker" else ())]:
    importlib.import_module(name)
