"""Queues as sources and sinks of Spark: `spark.readStream.format("msmq")`.

Spark finds the source by itself where merq is installed. Where packages are shipped to a cluster in
other ways, `spark.dataSource.register(MsmqSource)` makes it known.
"""
