"""Names that grow with the graph."""

from pathlib import Path

from knowformer import Reasoner
from knowformer.live.facts import Change
from knowformer.live.snapshots import LiveGraph
from knowformer.server.names import Names


def test_a_snapshot_finds_its_own_names_alone(reasoner: Reasoner, tmp_path: Path) -> None:
    live = LiveGraph.open(reasoner, tmp_path / "live.sqlite")
    before, names = live.snapshot(), Names(live.snapshot())
    live.change([Change("place00", "next", "newtown")])
    after = live.snapshot()
    live.close()
    assert [match.name for match in names.entities(after, "newt", 5)] == ["newtown"]
    assert names.entities(before, "newt", 5) == []
    assert names.relations("ski", 1)[0].name == "skip"
