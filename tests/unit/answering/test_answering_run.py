"""A loaded run that answers files: the same as the facade that is made of it."""

from pathlib import Path

import torch

from knowformer import KnowledgeGraph, ModelConfig, RunConfig
from knowformer.answering.answering_run import AnsweringRun
from knowformer.data.dataset import Dataset, Split
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.runs.folder import Bundle

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=2)


def test_a_run_answers_a_file_into_a_file_and_into_a_folder(
    family: KnowledgeGraph, tmp_path: Path
) -> None:
    splits = [
        Split(name, family, family.facts[:0], family.facts) for name in ("train", "valid", "test")
    ]
    model = KnowFormer(SMALL, 2 * len(family.relations)).eval()
    initialize(model, generator=torch.Generator().manual_seed(0))
    config = RunConfig(model=SMALL)
    bundle = Bundle(tmp_path / "run", config, Dataset("family", *splits), model, "softmax")
    run = AnsweringRun(bundle, family, threads=1)
    queries = tmp_path / "q.tsv"
    queries.write_text("ann\tmother_of\n?\tmother_of\tbob\nann\tfather_of\n", "utf-8")
    assert run.answer_file(queries, tmp_path / "one.tsv", k=2).answered == 3
    folder = tmp_path / "many"
    summary = run.answer_folder(queries, folder, format="tsv", shard_rows=2, k=2)
    assert (summary.answered, summary.out) == (3, str(folder))
    shards = [path.read_text("utf-8").splitlines() for path in sorted(folder.glob("answers-*.tsv"))]
    one = (tmp_path / "one.tsv").read_text("utf-8").splitlines()
    assert [one[0], *shards[0][1:], *shards[1][1:]] == one
    assert run.answerer.graph is family
