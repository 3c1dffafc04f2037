"""The queue as a Spark data source: `spark.read.format("lonnymq")`, and its four other doors."""
