"""Results as tables: for pandas, for notebooks and for terminals, from one description."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from knowformer.errors import printable, require_package

if TYPE_CHECKING:
    import pandas
    from rich.table import Table

NARROW = 9  # characters of a heading that numbers stand below
PLAIN_WIDTH = 100  # characters of a printed table; its columns are no wider than they need

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Column:
    """A named column and how its numbers are shown."""

    name: str
    decimals: int = 3
    is_number: bool = False
    words: tuple[str, str] = ("no", "yes")
    """How False and True are shown."""
    is_probability: bool = False
    """Rounded to <0.001 and >0.999, not to 0 and 1."""
    is_shown: bool = True
    """Whether people see it; pandas gets every column."""


@dataclass(frozen=True)
class TableView:
    """A table of raw values: pandas gets numbers, people get text."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    sections: frozenset[int] = field(default_factory=frozenset[int])
    """Rows after which a line is drawn."""

    @property
    def shown_columns(self) -> list[Column]:
        """Returns the columns that people see."""
        return [column for column in self.columns if column.is_shown]

    def text(self, row: Sequence[Cell]) -> list[str]:
        """Returns a row as people read it."""
        cells = zip(row, self.columns, strict=True)
        return [_text(value, column) for value, column in cells if column.is_shown]


class Tabular:
    """A result that is a table: for pandas, in notebooks, with rich, and printed as it is."""

    def table(self) -> TableView:
        """Returns the result as a table."""
        raise NotImplementedError

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns the table as a data frame.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        view = self.table()
        return to_frame([column.name for column in view.columns], view.rows)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=PLAIN_WIDTH, no_color=True, emoji=False, highlight=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        view = self.table()
        # Jupyter sets everything to the right; names read better from the left.
        style = ["" if c.is_number else ' style="text-align:left"' for c in view.shown_columns]
        names = [column.name for column in view.shown_columns]

        def cells(tag: str, texts: Sequence[str]) -> str:
            filled = zip(texts, style, strict=True)
            return "".join(f"<{tag}{how}>{escape(text)}</{tag}>" for text, how in filled)

        head = cells("th", names)
        body = "".join(f"<tr>{cells('td', view.text(row))}</tr>" for row in view.rows)
        caption = escape(view.caption).replace("\n", "<br>")
        return (
            f"<table><caption><b>{escape(view.title)}</b></caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p><small>{caption}</small></p>"
        )

    def __rich__(self) -> "Table":
        from rich.markup import escape as plain
        from rich.table import Table

        view = self.table()
        table = Table(title=plain(view.title), title_justify="left", title_style="bold")
        for column in view.shown_columns:
            justify = "right" if column.is_number else "left"
            name = plain(column.name)
            if column.is_number and len(name) > NARROW:
                name = name.replace(" ", "\n")  # no wider than its numbers
            table.add_column(name, justify=justify, overflow="fold", no_wrap=column.is_number)
        for number, row in enumerate(view.rows):
            cells = [plain(text) for text in view.text(row)]
            table.add_row(*cells, end_section=number in view.sections)
        table.caption, table.caption_justify = plain(view.caption), "left"
        return table


def to_frame(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> "pandas.DataFrame":
    """Returns rows as a data frame.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    require_package("pandas", extra="frames", purpose="make a data frame")
    import pandas

    return pandas.DataFrame.from_records(list(rows), columns=list(columns))


def _text(value: Any, column: Column) -> str:
    if isinstance(value, bool):
        return column.words[value]
    if isinstance(value, float):
        least = 10.0**-column.decimals
        if column.is_probability and 0 < value < least / 2:
            return f"<{least:.{column.decimals}f}"
        if column.is_probability and 1 - least / 2 < value < 1:
            return f">{1 - least:.{column.decimals}f}"
        return f"{value:,.{column.decimals}f}"
    return (
        "" if value is None else f"{value:,}" if isinstance(value, int) else printable(str(value))
    )
