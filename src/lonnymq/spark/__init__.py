"""The queue as a Spark data source, `format("lonnymq")`: batch and stream, to read, write and consume."""
