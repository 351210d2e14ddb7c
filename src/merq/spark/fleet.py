"""Several queue managers at once: how they are reached, what they have, and reading from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from merq.protocol.application.requests import Family
from merq.spark.columns import ddl
from merq.spark.managers import Access, accesses
from merq.spark.options import BadOption, read_options

DEAD_LETTERS: Final = (r".\system$;DEADLETTER", r".\system$;DEADXACT")
"""Where every queue manager keeps what could not be delivered."""

_FORMAT: Final = "msmq"


class Reach(Protocol):
    """What a flow's settings say of queue managers.

    Attributes:
        url: Where they are; several names, or several in one, separated by commas.
        token: Who the client is, for TCP.
        tls_ca: The authority to trust, for TLS.
        tls_cert: The client's certificate.
        tls_key: Its key.
    """

    @property
    def url(self) -> str | tuple[str, ...]: ...  # noqa: D102 - the class says it
    @property
    def token(self) -> str: ...  # noqa: D102
    @property
    def tls_ca(self) -> str: ...  # noqa: D102
    @property
    def tls_cert(self) -> str: ...  # noqa: D102
    @property
    def tls_key(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Member:
    """A queue manager of a fleet.

    Attributes:
        access: How it is reached.
        name: Its computer's name.
        guid: Its identifier, which is the first half of its messages' ids.
    """

    access: Access
    name: str
    guid: str

    def queues(self) -> list[str]:
        """Names of all its queues that messages can be in, outgoing ones and journals too."""
        reports = self.access.manager().reports(Family.ALL)
        return sorted(each.properties.path_name for each in reports)

    def path_of(self, name: str) -> str:
        r"""A queue's path name as the queue manager has it: `orders` is `.\private$\orders`."""
        if "\\" not in name:
            return rf".\private$\{name}"
        computer, _, rest = name.partition("\\")
        return rf".\{rest}" if computer.lower() == self.name.lower() else name


def options_of(reach: Reach) -> dict[str, str]:
    """The options of the source that say how queue managers are reached."""
    given = {
        "url": reach.url if isinstance(reach.url, str) else ",".join(reach.url),
        "token": reach.token,
        "tlsCa": reach.tls_ca,
        "tlsCert": reach.tls_cert,
        "tlsKey": reach.tls_key,
    }
    return {name: text for name, text in given.items() if text}


def since_option(since: str) -> dict[str, str]:
    """The option of the source that leaves out what came before a time; none if it is empty.

    Raises:
        BadOption: It is no time.
    """
    given = {"startingTimestamp": since} if since else {}
    try:
        read_options(given)
    except BadOption as wrong:
        raise BadOption(str(wrong).replace("option startingTimestamp", "since")) from wrong
    return given


def split(names: Iterable[str]) -> list[str]:
    """Names, each of which may be several that are separated by commas."""
    return [part.strip() for each in names for part in each.split(",") if part.strip()]


def members(reach: Reach) -> list[Member]:
    """The queue managers, each asked for its name.

    Raises:
        BadOption: Two of them are the same one.
        MessageQueueError: One does not answer.
    """
    found = []
    for access in accesses(read_options(options_of(reach))):
        manager = access.manager()
        found.append(Member(access, manager.name, str(manager.guid)))
    guids = [each.guid for each in found]
    for each in found:
        if guids.count(each.guid) > 1:
            raise BadOption(f"option url: the queue manager {each.name} is named twice")
    return found


def only_member(reach: Reach) -> Member:
    """The queue manager, where there can be one only.

    Raises:
        BadOption: There are several.
        MessageQueueError: It does not answer.
    """
    found = members(reach)
    if len(found) != 1:
        raise BadOption(
            f"option url: {', '.join(each.access.url for each in found)} was found; one queue "
            "manager belongs there"
        )
    return found[0]


def read(
    spark: SparkSession,
    reach: Reach,
    member: Member,
    queues: Sequence[str],
    columns: Sequence[str],
    **more: str,
) -> DataFrame:
    """Messages that queues of one queue manager have now, with its name and URL.

    Args:
        spark: The session.
        reach: How it is reached.
        member: The queue manager.
        queues: Which of its queues.
        columns: Which columns.
        **more: Other options of the source.
    """
    options = {**options_of(reach), **more, "url": member.access.url}
    if not options["url"]:
        del options["url"]
    frames = []
    # Spark starts a process of its own to plan each table: one for all queues, but for those whose
    # names would be cut in two.
    together = ",".join(each for each in queues if "," not in each)
    alone = [("queue", each) for each in queues if "," in each]
    for option in [("queues", together), *alone] if together else alone:
        reader = spark.read.format(_FORMAT).options(**options).schema(ddl(columns))
        frames.append(reader.option(*option).load())
    found = union(spark, frames, ddl(columns))
    return found.select(
        sql.lit(member.name).alias("manager"), sql.lit(member.access.url).alias("url"), "*"
    )


def union(spark: SparkSession, frames: Sequence[DataFrame], schema: str) -> DataFrame:
    """All rows; a table without rows if there is nothing to put together."""
    if not frames:
        return spark.createDataFrame([], schema)
    return reduce(DataFrame.unionByName, frames)


def id_of(correlation_id: Column) -> Column:
    r"""A correlation id, 20 bytes, as a message id is written: `{guid}\number`."""
    digits = sql.lower(sql.hex(correlation_id))

    def reversed_bytes(first: int, last: int) -> list[Column]:
        return [sql.substring(digits, 2 * each + 1, 2) for each in range(last, first - 1, -1)]

    guid = sql.concat_ws(
        "-",
        sql.concat(*reversed_bytes(0, 3)),
        sql.concat(*reversed_bytes(4, 5)),
        sql.concat(*reversed_bytes(6, 7)),
        sql.substring(digits, 17, 4),
        sql.substring(digits, 21, 12),
    )
    ordinal = sql.conv(sql.concat(*reversed_bytes(16, 19)), 16, 10)
    return sql.concat(sql.lit("{"), guid, sql.lit("}\\"), ordinal)


def name_of(guid: Column, fleet: Sequence[Member]) -> Column:
    """The name of a queue manager where it is known, else its identifier."""
    names = [part for each in fleet for part in (sql.lit(each.guid), sql.lit(each.name))]
    if not names:
        return guid
    return sql.coalesce(sql.create_map(*names)[guid], guid)


def text_columns(*names: str) -> StructType:
    """A table of texts."""
    return StructType([StructField(name, StringType()) for name in names])


def tuples(frame: DataFrame, most: int) -> list[tuple[Any, ...]]:
    """The first rows of a table that has few, or is cut off."""
    return [tuple(row) for row in frame.limit(most).collect()]
