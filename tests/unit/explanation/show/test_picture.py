import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from knowformer.errors import ConfigError, MissingPackageError, StorageError
from knowformer.explanation.check.faithfulness_report import (
    CurvePoint,
    FaithfulnessCurve,
    FaithfulnessReport,
)
from knowformer.explanation.explanation import (
    AttendedEntity,
    EvidencePath,
    Explanation,
    Faithfulness,
    ScoreDrop,
    ScoreMargin,
    Step,
)
from knowformer.explanation.show import picture

DROP = ScoreDrop(
    score=1.0, log_odds=1.5, truth_log_odds=1.5, probability=0.1, rank=2.0, rank_among_all=3.0
)
PROTOTYPE = AttendedEntity(entity="p", influence=0.1, attention=1.2)


def explanation(*, with_evidence: bool) -> Explanation:
    step = Step(start="h", relation="part_of", end="t", backwards=True)
    return Explanation(
        head="h",
        relation="likes $x_1$",
        tail="t",
        asks_for="tail",
        standing=ScoreMargin(
            score=1.0,
            log_odds=0.5,
            truth_log_odds=0.5,
            probability=0.6,
            rank=1.0,
            rank_among_all=2.0,
        ),
        num_rivals=9,
        num_candidates=12,
        fact_hidden=False,
        paths=[EvidencePath(steps=[step], weight=2.0, loss=DROP)] if with_evidence else [],
        no_paths=None if with_evidence else "No path of facts leads from h to t.",
        prototypes=[PROTOTYPE] if with_evidence else [],
        attended=[],
        heads=[],
        no_prototypes=None if with_evidence else "This model has no attention.",
        without_attention=DROP if with_evidence else None,
        faithfulness=[
            Faithfulness(
                evidence="paths", size=1, loss=DROP, random=[DROP, DROP], verdict="contribute"
            )
        ]
        if with_evidence
        else [],
        seconds=0.1,
        entity_labels={"t": "a tail with a name & a half"},
    )


@pytest.mark.parametrize("with_evidence", [True, False], ids=["evidence", "none"])
@pytest.mark.parametrize("ending", [".svg", ".PNG", ".pdf"])
def test_an_explanation_is_drawn(tmp_path: Path, ending: str, with_evidence: bool) -> None:
    path = tmp_path / f"why{ending}"
    picture.check_picture(path)
    picture.draw_explanation(explanation(with_evidence=with_evidence), path)
    starts = {".svg": b"<?xml", ".PNG": b"\x89PNG", ".pdf": b"%PDF"}
    content = path.read_bytes()
    assert content.startswith(starts[ending])
    if ending == ".svg":
        ET.fromstring(content)
        assert b"likes $x_1$" in content  # a name, not a formula
        assert (b"contribute" in content) is with_evidence
        picture.draw_explanation(explanation(with_evidence=with_evidence), path)
        assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_curves_are_drawn(tmp_path: Path) -> None:
    points = [
        CurvePoint(size=n, pieces=n, named=n, random=0.0, difference=n, low=0.0, high=n + 1)
        for n in (1, 2, 5)
    ]
    curve = FaithfulnessCurve(
        evidence="paths", mode="deletion", measure="log_odds", num_predictions=4, points=points
    )
    report = FaithfulnessReport(
        dataset="ring",
        num_predictions=4,
        num_draws=2,
        confidence=0.95,
        mean_reciprocal_rank=0.5,
        curves=[curve],
        seconds=1.0,
        seconds_per_explanation=0.1,
        command=None,
    )
    picture.draw_curves(report, tmp_path / "curves.svg")
    assert b"<!-- paths, deletion -->" in (tmp_path / "curves.svg").read_bytes()
    picture.draw_curves(report.model_copy(update={"curves": []}), tmp_path / "none.svg")
    assert b"<!-- paths, deletion -->" not in (tmp_path / "none.svg").read_bytes()


def test_another_ending_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"end in \.svg, \.png, \.pdf, got .*why\.gif"):
        picture.check_picture(tmp_path / "why.gif")


def test_without_matplotlib_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'knowformer\[plots\]'"):
        picture.check_picture(tmp_path / "why.svg")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        picture.draw_explanation(explanation(with_evidence=True), tmp_path / "file" / "why.svg")
