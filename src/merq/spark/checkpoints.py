"""What Spark has written into the checkpoint of a stream of ours, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from merq.spark.lake.folder import Folder
from merq.spark.managers import Place
from merq.spark.options import Offsets
from merq.spark.streaming import check_given

_OFFSETS: Final = "offsets"


def offsets_file(checkpoint: str, batch: int) -> str:
    """The file that says which messages a batch means."""
    return f"{checkpoint}/{_OFFSETS}/{batch}"


def offsets_text(folder: Folder, checkpoint: str, batch: int) -> str:
    """Up to where a batch goes, as Spark has it: a JSON object in the last of the file's lines."""
    return folder.read_text(offsets_file(checkpoint, batch)).splitlines()[-1]


def last_offsets(folder: Folder, checkpoint: str) -> Offsets:
    """Up to where the last batch goes, for each queue; nothing if there was none.

    What a power failure has cut off says nothing here: Spark refuses it, and says what to do.
    """
    names = [name.rpartition("/")[2] for name in folder.files_in(f"{checkpoint}/{_OFFSETS}")]
    batches = [int(name) for name in names if name.isdecimal()]
    if not batches:
        return {}
    try:
        found = json.loads(offsets_text(folder, checkpoint, max(batches)))
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def check_checkpoint(folder: Folder, checkpoint: str, queues: Sequence[Place]) -> None:
    """Looks whether queues are those that a stream has peeked at before.

    Raises:
        DataLoss: The queue manager of one is another, or was set back.
    """
    known = last_offsets(folder, checkpoint)
    for each in queues:
        after = known.get(each.title)
        if after is not None:
            span = each.access.manager().bulk.span(each.queue(), after=after, most=1)
            check_given(each.title, after, span.given)
