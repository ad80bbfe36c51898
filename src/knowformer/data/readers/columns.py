"""Which columns of a table are head, relation and tail: by option, by name, or by place."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from knowformer.data.readers.rows import shorten
from knowformer.errors import ConfigError, DataError, suggest

DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "pipe", " ": "space"}

# What columns are called in the files of the field, by what they mean.
ROLE_WORDS: dict[str, frozenset[str]] = {
    "head": frozenset({"head", "subject", "source", "from", "h", "s", "subj", "src", "start"}),
    "relation": frozenset(
        {"relation", "predicate", "property", "rel", "r", "p", "pred", "edge", "edge_type", "label"}
    ),
    "tail": frozenset({"tail", "object", "target", "to", "t", "o", "obj", "dst", "end"}),
    "id": frozenset({"id", "entity", "iri", "uri", "mid", "key"}),
    "name": frozenset({"name", "label", "title"}),
}
FACT_ROLES = ("head", "relation", "tail")


@dataclass(frozen=True)
class Dialect:
    """How to read a table; what is None is worked out from its first lines."""

    delimiter: str | None = None
    quote: str | None = None
    """The quote character, or an empty string for none; by default none with tabs, else ``\"``."""
    header: bool | None = None
    columns: tuple[str, ...] | None = None
    """Of head, relation and tail: names, or numbers from 1."""
    time: str | None = None
    """A further column that says when a fact was made."""


def with_time(roles: tuple[str, ...], dialect: Dialect) -> tuple[str, ...]:
    """Returns the roles, and the time if the dialect has a column of times."""
    return roles if dialect.time is None else (*roles, "time")


@dataclass(frozen=True)
class Layout:
    """How a table is read: what the options say, and what was worked out."""

    delimiter: str
    """Empty for a format that has columns by itself."""
    quote: str
    has_header: bool
    first_row: list[str]
    roles: tuple[str, ...]
    indices: tuple[int, ...]

    def describe(self) -> str:
        """Says how the table is read, in one line."""
        named = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        columns = ", ".join(
            f"{role} = {self.first_row[i] if self.has_header else f'column {i + 1}'}"
            for role, i in zip(self.roles, self.indices, strict=True)
        )
        if not self.delimiter:
            return columns
        header = "the first line is a header" if self.has_header else "no header line"
        return f"{named}-separated, {header}; {columns}"


def named_layout(path: Path, names: list[str], dialect: Dialect, roles: tuple[str, ...]) -> Layout:
    """Returns the layout of a format that names its columns itself; see ``choose_columns``."""
    indices = choose_columns(path, names, dialect, roles)
    return Layout("", "", True, names, with_time(roles, dialect), indices)


def find_named_columns(first: Sequence[str], roles: tuple[str, ...]) -> tuple[int, ...] | None:
    """Returns the columns of a header that uses well-known words, or None."""
    cells = [cell.strip().casefold().removesuffix("_id") for cell in first]
    columns: list[int] = []
    for role in roles:
        matches = [i for i, cell in enumerate(cells) if cell in ROLE_WORDS[role]]
        exact = [i for i in matches if cells[i] == role]
        if len(matches) != 1 and len(exact) != 1:
            return None
        columns.append((exact or matches)[0])
    return tuple(columns) if len(set(columns)) == len(roles) else None


def choose_columns(
    path: Path,
    first: list[str],
    dialect: Dialect,
    roles: tuple[str, ...] = FACT_ROLES,
    *,
    has_header: bool = True,
) -> tuple[int, ...]:
    """Returns the columns of each role, and of the time if there is one, counted from 0.

    Raises:
        DataError: there is no such column, or nothing says which columns are meant.
        ConfigError: the option names too few columns, too many, or one twice.
    """
    time = () if dialect.time is None else (_column(path, first, dialect.time, has_header),)
    if dialect.columns and len(dialect.columns) != len(roles):
        raise ConfigError(
            f"Expected {len(roles)} columns ({','.join(roles)}) as `columns`, got "
            f"{len(dialect.columns)}: {','.join(dialect.columns)}."
        )
    if dialect.columns:
        chosen = tuple(_column(path, first, name, has_header) for name in dialect.columns)
        if len(set(chosen)) < len(chosen):
            raise ConfigError(
                f"Expected {len(roles)} different columns ({','.join(roles)}) as `columns`, got "
                f"{','.join(dialect.columns)}."
            )
        return (*chosen, *time)
    named = find_named_columns(first, roles) if has_header else None
    rest = tuple(i for i in range(len(first)) if i not in time)
    if named is None and len(rest) != len(roles):
        beside = " beside the time" if time else ""
        raise DataError(
            f"Expected {len(roles)} columns ({', '.join(roles)}){beside}, got {len(rest)} in "
            f"{path}: {shorten(', '.join(map(repr, first)))}. {_advice(roles, len(rest))}"
        )
    return (*(named or rest), *time)


def _advice(roles: tuple[str, ...], number: int) -> str:
    """Returns what to do about a table with too many or too few columns."""
    if roles != FACT_ROLES:
        return f"Name the columns in a header line: {', '.join(roles)}."
    if number > len(roles):
        return "Say which ones with `columns`, by name or by number from 1."
    return "Each row needs all of them; for another character between columns give `delimiter`."


def _column(path: Path, first: list[str], wanted: str, has_header: bool) -> int:
    if wanted.isdecimal():
        number = int(wanted)
        if not 1 <= number <= len(first):
            raise DataError(
                f"Expected a column number from 1 to {len(first)}, got {number} for {path}."
            )
        return number - 1
    names = [cell.strip() for cell in first]
    if not has_header or wanted not in names:
        raise DataError(
            f"Expected a column named {wanted!r} in {path}, found "
            f"{shorten(', '.join(names))} in its first line.{suggest(wanted, names)}"
        )
    return names.index(wanted)
