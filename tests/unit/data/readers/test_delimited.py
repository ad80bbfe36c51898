import gzip
from pathlib import Path

import pytest

from knowformer.data.readers.columns import Dialect
from knowformer.data.readers.delimited import detect_layout, read_delimited
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows
from knowformer.errors import ConfigError, DataError

Rows = list[tuple[str, ...]]


def read(path: Path, dialect: Dialect | None = None, *, skip: bool = False) -> tuple[Rows, BadRows]:
    reading = Reading(dialect or Dialect(), bad_rows=BadRows(skip=skip))
    rows: Rows = []
    for chunk in read_delimited(path, reading):
        rows += zip(*chunk.columns, strict=True)
    return rows, reading.bad_rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "facts.csv"


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", "|"])
def test_the_delimiter_is_worked_out(file: Path, delimiter: str) -> None:
    facts = [("ann", "knows", "bob"), ("bob", "knows", "cid x")]
    file.write_text("".join(delimiter.join(fact) + "\n" for fact in facts))
    assert read(file)[0] == facts


def test_a_header_of_known_words_says_which_column_is_which(file: Path) -> None:
    file.write_text("id,object,subject,predicate\n1,bob,ann,knows\n")
    assert read(file)[0] == [("ann", "knows", "bob")]
    assert "header" in detect_layout(file, Dialect()).describe()


def test_without_known_words_the_first_line_is_a_fact(file: Path) -> None:
    file.write_text("ann,knows,bob\n")
    assert read(file)[0] == [("ann", "knows", "bob")]
    assert read(file, Dialect(header=True))[0] == []


def test_columns_are_named_or_numbered(file: Path) -> None:
    file.write_text("who;x;what;whom\nann;1;knows;bob\n")
    assert read(file, Dialect(columns=("who", "what", "whom")))[0] == [("ann", "knows", "bob")]
    assert read(file, Dialect(columns=("4", "3", "1"), header=True))[0] == [("bob", "knows", "ann")]


def test_quotes_hold_delimiters_and_are_names_themselves_with_tabs(file: Path) -> None:
    file.write_text('"Smith, Ann",knows,"Bob ""Bo"""\n')
    assert read(file)[0] == [("Smith, Ann", "knows", 'Bob "Bo"')]
    file.write_text('"ann"\tknows\t"bob\n')
    assert read(file)[0] == [('"ann"', "knows", '"bob')]


def test_gzip_byte_order_mark_and_carriage_returns_do_not_matter(file: Path) -> None:
    content = "\ufeffann,knows,bob\r\n\r\nbob,knows,cid".encode()
    file.write_bytes(content)
    plain = read(file)[0]
    file.write_bytes(gzip.compress(content))
    assert read(file)[0] == plain == [("ann", "knows", "bob"), ("bob", "knows", "cid")]


def test_a_ragged_row_is_refused_with_its_line_even_after_quoted_line_breaks(file: Path) -> None:
    file.write_text('a,b,"c\nd"\n\ne,f\n')
    with pytest.raises(DataError, match=r"got 2 at .*facts\.csv:4\."):
        read(file)
    rows, bad_rows = read(file, skip=True)
    assert rows == [("a", "b", "c\nd")]
    assert [row.place for row in bad_rows.rows] == [f"{file}:4"]


def test_rows_around_a_broken_one_are_kept(file: Path) -> None:
    file.write_text('a,b,c\n"x"y,b,c\nd,e,f\n')
    with pytest.raises(DataError, match=r"facts\.csv:2\."):
        read(file)
    rows, bad_rows = read(file, skip=True)
    assert rows == [("a", "b", "c"), ("d", "e", "f")]
    assert [row.place for row in bad_rows.rows] == [f"{file}:2"]


def test_a_quote_that_is_never_closed_is_named_where_it_opens(file: Path) -> None:
    file.write_text('a,b,c\n"d,e,f\ng,h,i\n')
    with pytest.raises(DataError, match=r"never closed at .*facts\.csv:2\."):
        read(file)


@pytest.mark.parametrize(
    ("content", "dialect", "said"),
    [
        ("who,what,whom\na,b,c\n", Dialect(columns=("who", "waht", "whom")), "mean 'what'"),
        ("a,b,c\n", Dialect(columns=("1", "2", "4")), "from 1 to 3, got 4"),
        ("a,b,c,d\n", Dialect(), "got 4 in .*`columns`"),
        ("a,b\n", Dialect(delimiter=","), "got 2 in .*: 'a', 'b'.* `delimiter`"),
        ("a,b,c\n", Dialect(time="3"), "beside the time, got 2"),
        ("a,b,c\rd,e,f\r", Dialect(), "carriage returns alone"),
        ("a b c\n", Dialect(), "`delimiter`"),
        ("\n \n", Dialect(), "blank lines"),
    ],
)
def test_columns_that_are_not_there_are_refused(
    file: Path, content: str, dialect: Dialect, said: str
) -> None:
    file.write_text(content)
    with pytest.raises(DataError, match=said):
        read(file, dialect)


def test_options_that_cannot_be_are_refused(file: Path) -> None:
    file.write_text("a,b,c\n")
    with pytest.raises(ConfigError, match="one character"):
        read(file, Dialect(delimiter="::"))
    with pytest.raises(ConfigError, match="one character"):
        read(file, Dialect(delimiter=""))
    with pytest.raises(ConfigError, match="3 columns"):
        read(file, Dialect(columns=("1", "2")))
    with pytest.raises(ConfigError, match="3 different columns"):
        read(file, Dialect(columns=("1", "2", "2")))


def test_names_that_look_like_other_formats_are_names(file: Path) -> None:
    genes = [("PAR1", "binds", "BZhF"), ("BZhF", "binds", "na\0me")]
    file.write_text("".join(",".join(fact) + "\n" for fact in genes) + "ä" * 5000 + ",b,c\n")
    assert read(file)[0][:2] == genes
