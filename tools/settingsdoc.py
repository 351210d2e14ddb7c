"""Writes docs/reference/settings.md from the declarations in merq.service: `make docs`.

    python tools/settingsdoc.py [--check]

With --check nothing is written; the exit status is 1 if the page is not what it would be.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from merq.service.settings import SECTIONS, Described, describe

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "settings.md"

HEAD = """\
# Settings reference

Generated from the declarations in `src/merq/service/sections.py` by `make docs`.
[Operating](../guide/operating.md) tells how they are given. A key's variable is its name in capital
letters after `MERQ_`, with `_` for the dot. Sizes are numbers of bytes or text such as `"64 MiB"`,
times are numbers of seconds or text such as `"30 s"`, `"5 min"`, `"12 h"` or `"90 d"`.
"""

TOP = "Keys that stand before every table."


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for table, keys in groupby(describe(), key=table_of):
        title = f"`[{table}]`" if table else "At the top"
        words = (SECTIONS[table].__doc__ or "").split("\n\n")[0].strip() if table else TOP
        parts.append(f"## {title}\n\n{words}\n\n{rows(list(keys))}")
    return "\n".join(parts)


def table_of(key: Described) -> str:
    """The table that a key stands in; empty for those that stand before all."""
    return key.key.partition(".")[0] if "." in key.key else ""


def rows(keys: list[Described]) -> str:
    """The keys of one table, a line each."""
    lines = ["| key | what | default | variable | |", "|---|---|---|---|---|"]
    for each in keys:
        what = f"{each.type_name}: {each.extent}" if each.extent else each.type_name
        default = f"`{each.default}`" if each.is_value else each.default
        lines.append(f"| `{each.key}` | {what} | {default} | `{each.variable}` | {each.meaning} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes the page, or checks it."""
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.read_text(encoding="utf-8") == page() else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
