import doctest
from pathlib import Path

import pytest

import knowformer


def test_the_public_names_are_these_and_no_others() -> None:
    assert knowformer.__all__ == [
        "Answer",
        "AnswerStream",
        "Answers",
        "BatchSummary",
        "Dataset",
        "Explanation",
        "FaithfulnessReport",
        "KnowFormer",
        "KnowformerError",
        "KnowledgeGraph",
        "MissingFact",
        "MissingFacts",
        "ModelConfig",
        "NoiseSpread",
        "QueryBatch",
        "Reasoner",
        "RunConfig",
        "Scores",
        "StopTraining",
        "TrainingBatches",
        "TrainingConfig",
        "evaluate",
        "load_dataset",
        "pretrain",
        "score_queries",
        "train",
        "tune",
    ]
    assert all(hasattr(knowformer, name) for name in knowformer.__all__)


def test_the_example_of_the_package_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(knowformer)
    assert done.attempted > 0
    assert done.failed == 0
    assert (tmp_path / "runs" / "nations").is_dir()
