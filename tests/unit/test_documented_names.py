"""What the documents call by name exists, and the figures of the README are the stored ones."""

import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import knowformer

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "knowformer"
README = (ROOT / "README.md").read_text("utf-8")
RESULTS = (ROOT / "lab" / "experiments" / "RESULTS.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "docs" / "guides" / "contributing.md").read_text("utf-8")
PAPER_TO_CODE = (ROOT / "docs" / "concepts" / "paper_to_code.md").read_text("utf-8")


def source_tree() -> list[str]:
    """Returns the paths of the tree under "Source", by their indentation."""
    block = CONTRIBUTING.partition("\n## Source\n")[2].partition("```\n")[2].partition("```")[0]
    first, *lines = block.splitlines()
    assert first == "src/knowformer/"
    paths: list[str] = []
    folder = ""
    for line in lines:
        name = line.split()[0]
        is_inner = line.startswith("    ")
        paths.append(folder + name if is_inner else name)
        if not is_inner:
            folder = name if name.endswith("/") else ""
    return paths


def rows_of(text: str) -> list[list[str]]:
    """Returns the cells of every table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


QUOTED = re.compile(r"`([^`]+)`")
SHOWN_RESULTS = README.partition("\n## How good it is\n")[2].partition("\n## ")[0]
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")
IS_FILE = re.compile(r"[\w/]+(\.py|/)")
SYMBOLS = PAPER_TO_CODE.partition("\n## Symbols\n")[2].partition("\n## ")[0]
EQUATIONS = PAPER_TO_CODE.partition("\n## Equations\n")[2].partition("\n## ")[0]


@cache
def modules() -> list[ModuleType]:
    """Returns every module of the package that a model is made of."""
    folders = ("graph", "kernels", "model", "queries", "training")
    return [
        importlib.import_module(f"knowformer.{folder}.{found.name}")
        for folder in folders
        for found in pkgutil.iter_modules([str(PACKAGE / folder)])
    ]


def is_defined(name: str, within: list[ModuleType]) -> bool:
    """Whether a module has that class or function, or a class of it that method."""
    first, _, rest = name.partition(".")
    owners = [getattr(module, first) for module in within if hasattr(module, first)]
    return any(not rest or hasattr(owner, rest) for owner in owners)


def is_used(name: str, within: list[ModuleType]) -> bool:
    """Whether a module's source has the word: for arguments, fields and variables."""
    word = re.compile(rf"\b{name}\b")
    return any(word.search(inspect.getsource(module)) for module in within)


def module_of(path: str) -> ModuleType:
    return importlib.import_module("knowformer." + path.removesuffix(".py").replace("/", "."))


@pytest.mark.parametrize("path", source_tree())
def test_what_the_tree_lists_exists(path: str) -> None:
    found = PACKAGE / path
    assert found.is_dir() if path.endswith("/") else found.is_file()


def test_the_tree_lists_every_folder() -> None:
    listed = {path for path in source_tree() if path.endswith("/")}
    folders = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= listed
    assert knowformer.__file__ == str(PACKAGE / "__init__.py")


@pytest.mark.parametrize("row", rows_of(SHOWN_RESULTS)[2:], ids=lambda row: row[0])
def test_the_results_of_the_readme_are_those_of_the_report(row: list[str]) -> None:
    name, *figures = row
    (dataset,) = QUOTED.findall(name)
    stored = re.search(
        rf"^\| \[{dataset}\]\(results/(?:in|trans)ductive/.*$", RESULTS, flags=re.MULTILINE
    )
    assert stored
    cells = {cell.partition(" ±")[0].strip() for cell in stored[0].split("|")}
    assert set(figures) <= cells


@pytest.mark.parametrize(
    "path", sorted({p for p in QUOTED.findall(PAPER_TO_CODE) if IS_FILE.fullmatch(p)})
)
def test_the_files_of_the_paper_exist(path: str) -> None:
    assert (PACKAGE / path).exists() or (ROOT / path) == PACKAGE


@pytest.mark.parametrize("row", rows_of(SYMBOLS)[2:], ids=lambda row: row[0])
def test_the_symbols_of_the_paper_are_where_the_table_says(row: list[str]) -> None:
    _, code, _, where = row
    path, *owners = QUOTED.findall(where)
    module = module_of(path)
    for owner in owners:
        assert is_defined(owner, [module]), f"{owner} in {path}"
    names = [name for name in QUOTED.findall(code) if NAME.fullmatch(name)]
    assert names
    for name in names:
        assert is_used(name, [module]), f"{name} in {path}"


@pytest.mark.parametrize("row", rows_of(EQUATIONS)[2:], ids=lambda row: row[0])
def test_the_equations_of_the_paper_are_in_the_code(row: list[str]) -> None:
    quoted = QUOTED.findall(row[-1])
    names = [name for name in quoted if NAME.fullmatch(name)]
    assert names
    for name in names:
        assert is_defined(name, modules()), name
    for path in (each for each in quoted if IS_FILE.fullmatch(each)):
        assert is_defined(names[-1], [module_of(path)]), f"{names[-1]} in {path}"
