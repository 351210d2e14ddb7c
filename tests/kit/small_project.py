"""A small project with a conformance register of its own, for tests of the register's tool."""

from pathlib import Path

from tools.conformance import checks, command, register

# Never written as a citation in this file, whose citations are checked like all others.
DOC = "MS-MQQB"
SECTIONS = {
    "1": ("Introduction", "Everything MUST be introduced."),
    "2": ("Messages", ""),
    "2.1": ("Transport", "It MUST be carried."),
    "2.2": ("Syntax", "Bytes, laid out."),
    "2.10": ("Schema", "It MAY be stored."),
    "3": ("Details", ""),
    "3.1": ("Rules", "It SHOULD be obeyed."),
    "4": ("Examples", "This MUST be seen."),
}


def specification(sections: dict[str, tuple[str, str]], *, revision: str = "7.0") -> str:
    contents = [
        f"- [{number} {title}](#Section_{number})" for number, (title, _) in sections.items()
    ]
    lines = [f"# [{DOC}]: Messages by Hand", "", *contents, ""]
    for number, (title, body) in sections.items():
        level = number.count(".") + 1
        lines += [f"{'#' * level} {number} {title}" if level <= 6 else title, "", body, ""]
    return "\n".join([*lines, "## Revision History", f"| 4/3/2024 | {revision} | Major | New. |"])


class Project:
    """A project with one document, a source file and a test, all in order at first."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.register = root / "conformance" / f"{DOC}.toml"
        self.specification(SECTIONS)
        self.run("refresh", DOC, "--specs", str(root / "specs"))
        self.file("src/start/__init__.py", "import code\n")
        self.file("src/code.py", f'"""[{DOC}] 2.1"""\n')
        self.test('"MS-MQQB 2.1"')
        self.run("report")

    def run(self, *arguments: str) -> int:
        return command.main(["--root", str(self.root), *arguments])

    def file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def specification(self, sections: dict[str, tuple[str, str]], *, revision: str = "7.0") -> None:
        self.file(f"specs/{DOC}/{DOC}.md", specification(sections, revision=revision))

    def test(self, arguments: str) -> None:
        mark = f"@pytest.mark.spec({arguments})\ndef test_it() -> None: ...\n"
        self.file("tests/test_code.py", mark)

    def edit(self, old: str, new: str) -> None:
        text = self.register.read_text(encoding="utf-8")
        assert old in text
        self.file(f"conformance/{DOC}.toml", text.replace(old, new))

    def document(self) -> register.Document:
        return register.load_document(self.register)

    def status(self, number: str) -> tuple[str, str]:
        row = self.document().headings[number]
        return row.status.value, row.why

    def found(self, name: str) -> list[str]:
        check = checks.CHECKS[name]
        return [str(finding) for finding in check(register.load(self.root), self.root)]


def erratum(
    *,
    name: str = "E01",
    kind: str = "reading",
    found: str = "two sizes",
    section: str = f"{DOC} 2.1",
    unshown: str = "a matter of commentary",
) -> str:
    """An entry for errata.toml."""
    return (
        f'[[erratum]]\nid = "{name}"\nkind = "{kind}"\nwhere = "[{DOC}] 2.1"\nfound = "{found}"\n'
        f'decision = "the bytes"\nsections = ["{section}"]\nunshown = "{unshown}"\n'
    )


def with_statements(project: Project, *statements: str, status: str = "todo") -> None:
    """Give section 3.1 statements, written as in the file, and a status."""
    lines = "\n".join(f"    {{ {each} }}," for each in statements)
    why = ', why = "so"' if status in ("part", "deviates", "absent") else ""
    project.edit(
        'title = "Rules", status = "todo" }',
        f'title = "Rules", status = "{status}"{why}, statements = [\n{lines}\n  ] }}',
    )


def statement(name: str, status: str = "done", why: str = "", needs: str = "") -> str:
    """A statement, written as in the file."""
    why = f', why = "{why}"' if why else ""
    needs = f', needs = ["{needs}"]' if needs else ""
    return f'id = "{name}", status = "{status}"{why}{needs}, says = "it is so"'
