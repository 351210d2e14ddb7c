"""Pages that a flow leaves behind: one file of HTML that needs nothing else.

Whatever is handed over is text and is escaped here; only charts, which escape for themselves, go in
as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any, Final

from merq.spark.options import BadOption

CELL_CHARACTERS: Final = 400
"""Characters of a value that a table shows."""

PAGE: Final = "report.html"
"""What a flow's page is called in its output folder."""

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1f2328;--dim:#59636e;--back:#fff;--line:#d1d9e0;--bar:#1f6feb;
--range:#a5c8f8}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--back:#0d1117;--line:#3d444d;
--bar:#58a6ff;--range:#1f4a80}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:64rem;background:var(--back);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
p,figcaption,caption{overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.75rem;margin:1rem 0}
dl div{border:1px solid var(--line);border-radius:.5rem;padding:.5rem .75rem}
dt{color:var(--dim);font-size:.85rem}dd{margin:0;font-size:1.25rem;overflow-wrap:anywhere}
figure{margin:1rem 0;max-width:36rem}figcaption{font-weight:600;margin-bottom:.25rem}
svg{width:100%;height:auto;display:block;overflow:visible}
svg text{fill:var(--ink);font:11px system-ui,sans-serif}svg .label{fill:var(--dim)}
svg .bar{fill:var(--bar)}svg .range{fill:var(--range)}svg .axis{stroke:var(--line)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);
vertical-align:top;overflow-wrap:anywhere;min-width:5rem}
th{color:var(--dim);font-weight:500}td.number{text-align:right;font-variant-numeric:tabular-nums}
code{font-size:.85rem}footer{color:var(--dim);font-size:.85rem;margin-top:2rem}
"""


class Page:
    """A page that is written from top to bottom."""

    def __init__(self, title: str, made: datetime) -> None:
        self._title = title
        self._made = made
        self._parts: list[str] = []

    def heading(self, text: str) -> None:
        """A part begins."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """A paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def figures(self, figures: Mapping[str, object]) -> None:
        """Names and values, side by side."""
        cells = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(_shown(value))}</dd></div>"
            for name, value in figures.items()
        )
        self._parts.append(f"<dl>{cells}</dl>")

    def chart(self, svg: str) -> None:
        """A chart of `merq.spark.pages.charts`."""
        self._parts.append(svg)

    def table(self, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table."""
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        if not body:
            body = f'<tr><td colspan="{len(names)}">nothing</td></tr>'
        self._parts.append(
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )

    def html(self) -> str:
        """All of it."""
        title = escape(self._title)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            # Even if something were not escaped, nothing would be run or fetched.
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
            + "\n".join(self._parts)
            + f"\n<footer>{self._made:%Y-%m-%d %H:%M:%S} UTC, Merq</footer></body></html>\n"
        )

    def write(self, path: Path) -> None:
        """Writes the page; whoever looks meanwhile sees the one before it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.new")
        aside.write_text(self.html(), encoding="utf-8")
        aside.replace(path)


def page_path(report: str, output: str) -> Path:
    """Where a page is written: as it is said, or beside the tables.

    Raises:
        BadOption: The tables are on another file system, and nothing is said.
    """
    if report:
        return Path(report)
    if "://" in output and not output.startswith("file://"):
        raise BadOption(
            f"output is {output}, which is no folder of this computer: say by report where the "
            "page is written"
        )
    return Path(output.removeprefix("file://")) / PAGE


def _cell(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td class="number">{_shown(value)}</td>'
    return f"<td>{escape(_shown(value))}</td>"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)
    return text if len(text) <= CELL_CHARACTERS else f"{text[: CELL_CHARACTERS - 1]}…"
