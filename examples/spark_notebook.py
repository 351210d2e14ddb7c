# %% [markdown]
# # Orders: from a queue into a table
#
# A notebook: Jupyter and VS Code show its cells; `python examples/spark_notebook.py` runs all of
# them. It needs `pip install "merq[spark]"` and Java 17. Without `MERQ_URL` it has a queue manager
# of its own for as long as it runs.

# %%
"""Orders in a queue, looked at with Spark, streamed into a table, and asked for with SQL."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack

from local_service import local_service
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import merq
from merq.spark.session import spark_session

ORDERS, OFFERS = r".\private$\notebook_orders", r".\private$\notebook_offers"
GOODS = {"tea": 4.0, "honey": 7.5, "milk": 1.25}
PATIENCE_S = 120

ending = ExitStack()
url = ending.enter_context(local_service())
folder = ending.enter_context(tempfile.TemporaryDirectory())
# Notebooks on clusters have a session already. This one would be for this computer alone.
spark = SparkSession.getActiveSession() or spark_session("notebook", quick=True)
queues = spark.read.format("msmq").option("url", url)

# %% [markdown]
# ## Somebody sends orders
#
# As any application does it, with Spark nowhere near. Offers are purged before anybody takes them;
# their sender wanted to keep what becomes of them.

# %%
with merq.connect(url) as mq:
    orders = mq.create_queue(ORDERS)
    for number in range(12):
        article = list(GOODS)[number % len(GOODS)]
        order = {"number": number, "article": article, "count": 1 + number % 4}
        orders.send(json.dumps(order), label=article, recoverable=True)
    offers = mq.create_queue(OFFERS)
    for _ in range(2):
        offers.send("tea at half the price", label="offer", recoverable=True, dead_letter=True)
    offers.purge()

# %% [markdown]
# ## A queue is a table
#
# A batch looks at what is there and removes nothing. Text is in `value`, and what its type does not
# call text is in `body`.

# %%
queues.load(ORDERS).groupBy("label").count().orderBy("label").show()

# %% [markdown]
# ## A stream takes every message once
#
# With `readMode` `receive`, messages leave the queue when Spark has the batch that they are in. Run
# the cell again after more orders came: the checkpoint and the group say where it goes on.
# `availableNow` takes what is there and ends; leave the trigger out, and it waits for more.

# %%
prices = spark.createDataFrame(list(GOODS.items()), "article string, price double")
table = f"{folder}/orders"
arriving = (
    spark.readStream.format("msmq")
    .option("url", url)
    .option("queue", ORDERS)
    .option("readMode", "receive")
    .option("consumerGroup", "notebook")
    .option("columns", "message_id,arrived_time,value")
    .load()
)
contents = sql.from_json("value", "number int, article string, count int")
stream = (
    arriving.select("message_id", "arrived_time", contents.alias("order"))
    .select("message_id", "arrived_time", "order.*")
    .writeStream.format("parquet")
    .option("path", table)
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
stream.awaitTermination(PATIENCE_S)

# %% [markdown]
# ## SQL over the table

# %%
spark.read.parquet(table).createOrReplaceTempView("orders")
prices.createOrReplaceTempView("prices")
spark.sql("""
    select article, sum(count) as pieces, sum(count * price) as worth
    from orders join prices using (article) group by article order by worth desc
""").show()

with merq.connect(url) as mq:
    print(f"{len(mq.queue(ORDERS))} orders are left in the queue.")

# %% [markdown]
# ## What nobody got
#
# Dead-letter queues and journals are tables as well. For all queue managers at once, with charts,
# and with a way to send things again: `merq pipeline run deadletters`.

# %%
dead = queues.option("columns", "class,destination,label,value").load(r".\system$;DEADLETTER")
dead.where("label = 'offer'").groupBy("class", "destination").count().show(truncate=False)

# %% [markdown]
# ## The end

# %%
if __name__ == "__main__":
    spark.stop()
ending.close()
