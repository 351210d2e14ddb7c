"""Pipelines that people need, each a small job: `merq pipeline run NAME`, or by `spark-submit`.

A flow is a module of this package that has

* `NAME`, what it is called, and `SUMMARY`, what it does in a line,
* `Settings`, a frozen dataclass; options of the command line are made of its fields, and its
  docstring explains them,
* `look(settings)`, which raises what is wrong as far as that can be known without Spark, before a
  session is started; it changes nothing anywhere, and `run` does the same looks again,
* `run(spark, settings, progress)`, which gives a `Summary`.

`running` has what they share, `commands` makes commands of them, and `python -m merq.spark.flows`
is the program for `spark-submit`.
"""
