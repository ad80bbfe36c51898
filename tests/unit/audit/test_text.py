from knowformer.audit.audit import audit
from knowformer.audit.text import MAX_ROWS, audit_markdown
from knowformer.data.loading import load_dataset


def test_the_page_counts_the_rows_that_it_leaves_out() -> None:
    audited = audit(load_dataset("nations"))
    page = audit_markdown(audited).splitlines()
    start = page.index("## Relations")
    table = [line for line in page[start:] if line.startswith("| ")]
    assert f"{len(audited.by_relation) - MAX_ROWS:,} more in audit.json." in page[start:]
    assert table[2 + MAX_ROWS].startswith("| relation | is nearly")


def test_a_pipe_in_a_name_does_not_break_the_table() -> None:
    audited = audit(load_dataset("nations"))
    audited.by_relation[0].label = "a|b"
    assert "| a\\|b | n-n |" in audit_markdown(audited)
