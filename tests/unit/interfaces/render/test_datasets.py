import io

from rich.console import Console

from knowformer.data import catalog
from knowformer.interfaces.render.datasets import render_datasets
from knowformer.interfaces.schemas import DatasetResponse


def test_data_sets_are_listed_by_kind_with_their_counts():
    entries = [DatasetResponse.of(catalog.find(name)) for name in ("nations", "wn18rr_v1")]
    away = entries[1].model_copy(update={"folder": None, "test_facts": None})
    console = Console(file=io.StringIO(), width=100)
    console.print(render_datasets([entries[0], away]))
    lines = console.file.getvalue().splitlines()
    assert [line.strip() for line in lines if line.strip() in {"transductive", "inductive"}] == [
        *("transductive", "inductive"),
    ]
    (nations,) = [line.split() for line in lines if "nations" in line]
    assert nations[1:3] == ["14", "55"]
    assert nations[-1] == "embedded"
    (other,) = [line.split() for line in lines if "wn18rr_v1" in line]
    assert other[-3:] == ["-", "to", "download"]
