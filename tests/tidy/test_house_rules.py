"""The rules of ARCHITECTURE and STYLE that a reader would otherwise have to watch over."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
LINE_LENGTH_MAX = 100
EMPTY_NAMES = {"utils", "util", "common", "helpers", "helper", "base", "misc"}
CORE = ("errors.py", "hresult.py", "model", "wire")

SOURCES = sorted((ROOT / "src").rglob("*.py"))
PYTHON = sorted(
    path
    for folder in ("src", "tests", "tools", "bench", "fuzz", "examples")
    for path in (ROOT / folder).rglob("*.py")
)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tracked() -> list[Path]:
    """The project's own files: what git would carry, or all there is outside a checkout."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        found = [ROOT / line for line in done.stdout.splitlines()]
    else:
        found = [path for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return [path for path in found if path.is_file()]


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_a_module_is_not_too_long_and_says_what_is_in_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MODULE_LINES_MAX
    if "tests" not in path.parts or path.parent.name == "kit":
        assert ast.get_docstring(ast.parse(text)), "a module's docstring says what is in it"


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_no_function_is_too_long(path: Path) -> None:
    long = [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert not long


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_module_is_empty_or_has_a_name_that_says_nothing(path: Path) -> None:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if path.name != "__init__.py":
        assert len(body) > 1, "nothing but a docstring"
        assert path.stem not in EMPTY_NAMES
    assert path.parent.name not in EMPTY_NAMES


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_nothing_is_swallowed(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}: a bare except"
            bare_pass = len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
            assert not bare_pass, f"line {node.lineno}: a failure is swallowed"


def test_the_core_is_kept_from_the_world_by_the_linter() -> None:
    """The ban must hold in the core: no exemption in the settings, none in the code."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lint = settings["tool"]["ruff"]["lint"]
    assert {"time", "random", "socket", "logging", "asyncio", "os"} <= set(
        lint["flake8-tidy-imports"]["banned-api"]
    )
    assert any(rule in {"TID", "TID251"} for rule in lint["select"])
    for pattern, rules in lint["per-file-ignores"].items():
        if "TID251" in rules:
            assert not any(f"merq/{room}" in pattern for room in CORE), pattern
    for room in CORE:
        path = ROOT / "src" / "merq" / room
        for module in [path] if path.is_file() else path.rglob("*.py"):
            assert "TID251" not in module.read_text(encoding="utf-8"), relative(module)


def test_every_package_stands_in_the_import_order() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        contract
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    rooms = {
        path.stem
        for path in (ROOT / "src" / "merq").iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").is_file()) and path.stem != "__init__"
    }
    placed = [room.strip() for layer in layers["layers"] for room in layer.split("|")]
    assert sorted(placed) == sorted(rooms)
    assert layers["exhaustive"] is True


def test_strict_types_and_warnings_as_errors_are_on() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["mypy"]["strict"] is True
    assert settings["pytest"]["ini_options"]["filterwarnings"] == ["error"]
    assert settings["ruff"]["line-length"] == LINE_LENGTH_MAX


FOREIGN = re.compile(
    r"/root/|/home/\w+/|/work/|/tmp/"
    r"|pypi\.org|pythonhosted|npmjs|deb\.debian"
)


def test_the_files_speak_of_the_project_alone() -> None:
    """No path of one machine, no host of a package registry."""
    found = [
        f"{relative(path)}: {match[0]}"
        for path in tracked()
        if path != Path(__file__) and path.suffix not in {".png", ".pcap", ".pcapng"}
        for match in FOREIGN.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert not found


def test_every_locked_package_has_an_exact_version_and_a_hash() -> None:
    for name in ("test.lock", "service.lock", "extras.lock", "bench.lock"):
        text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
        entries = re.split(r"\n(?=\S)", text.strip())
        assert len(entries) > 5
        for entry in entries:
            assert re.match(r"^[\w.-]+==[\w.]+", entry), entry
            assert "--hash=sha256:" in entry, entry


def test_every_command_of_the_makefile_is_described_by_make_help() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    described = set(re.findall(r"^# make (\w+)", text, re.MULTILINE))
    assert {"test", "run", "bench", "fuzz", "lock", "docs", "clean"} <= described
    for name in described:
        assert re.search(rf"^{name}:", text, re.MULTILINE), name
