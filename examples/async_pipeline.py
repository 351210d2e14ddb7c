r"""A pipeline in asyncio: readings come in, are checked, and the good ones are summed up.

    python examples/async_pipeline.py

`receive_all` fetches messages ahead and removes them together, when the loop has come back for the
next one; so a stage that dies loses nothing, and sees its last few messages again. Messages that
are sent in one turn of the event loop travel together.
"""

from __future__ import annotations

import asyncio

from local_service import local_service

from merq import aio

RAW, CHECKED = r".\private$\readings", r".\private$\checked"
READING_COUNT = 1000
END = "end"


async def produce(url: str) -> None:
    """Sends readings, some of which make no sense; then a mark that there are no more."""
    async with aio.connect(url) as mq:
        raw = await mq.queue(RAW)
        readings = (-1 if number % 10 == 0 else number for number in range(READING_COUNT))
        await asyncio.gather(*(raw.send(reading, recoverable=True) for reading in readings))
        await raw.send(END, recoverable=True)


async def check(url: str) -> None:
    """Passes on what makes sense."""
    async with aio.connect(url) as mq:
        raw, checked = await mq.queue(RAW), await mq.queue(CHECKED)
        async with raw.receive_all() as readings:
            async for reading in readings:
                if reading.body != -1:
                    await checked.send(reading.body, recoverable=True)
                if reading.body == END:
                    break


async def sum_up(url: str) -> tuple[int, int]:
    """Gives how many readings there were, and their sum."""
    count = total = 0
    async with aio.connect(url) as mq:
        checked = await mq.queue(CHECKED)
        async with checked.receive_all(prefetch=50) as readings:
            async for reading in readings:
                if not isinstance(reading.body, int):
                    break
                count, total = count + 1, total + reading.body
    return count, total


async def main() -> None:
    """All stages at once; each has a connection of its own, as if it were another program."""
    with local_service() as url:
        async with aio.connect(url) as mq:
            await mq.create_queue(RAW)
            await mq.create_queue(CHECKED)
            _, _, (count, total) = await asyncio.gather(produce(url), check(url), sum_up(url))
            left = await (await mq.queue(RAW)).count() + await (await mq.queue(CHECKED)).count()
    print(f"{count} of {READING_COUNT} readings make sense; their sum is {total}")
    print(f"{left} messages are left in the queues")


if __name__ == "__main__":
    asyncio.run(main())
