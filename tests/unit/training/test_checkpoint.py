import re
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from knowformer.errors import BundleError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import QueryView
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.noise import identity_noise
from knowformer.storage.tensor_files import read_tensors, write_tensors
from knowformer.training.checkpoint import (
    Counters,
    load_checkpoint,
    read_counters,
    save_checkpoint,
    write_counters,
)
from knowformer.training.config import TrainingConfig
from knowformer.training.optimizer import Adam, build_optimizer


def fresh(graph: KnowledgeGraph, seed: int, hidden_dim: int = 8) -> tuple[KnowFormer, Adam]:
    config = ModelConfig(hidden_dim=hidden_dim, num_layers=1)
    model = KnowFormer(config, 2 * len(graph.relations))
    initialize(model, generator=torch.Generator().manual_seed(seed))
    return model, build_optimizer(model, TrainingConfig())


def step(model: KnowFormer, optimizer: Adam, graph: KnowledgeGraph) -> None:
    noise = identity_noise(model.config, graph.entity_keys, seed=0)
    heads = torch.arange(4)
    scores = model(QueryView.whole(graph.adjacency.edges, heads), heads, identity_noise=noise)
    optimizer.zero_grad()
    scores.square().sum().backward()
    optimizer.step()


def test_model_optimiser_counters_and_best_weights_come_back_exactly(
    tmp_path: Path, family: KnowledgeGraph
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimizer = fresh(family, 0)
    step(model, optimizer, family)
    best = {name: value.clone() for name, value in model.state_dict().items()}
    step(model, optimizer, family)
    counters = Counters(step=2, epoch=1, best_mrr=0.1 + 0.2, recent_losses=[0.1, 1e-9])
    save_checkpoint(path, model, optimizer, {"best": best}, counters)

    other, other_optimizer = fresh(family, 1)
    loaded_counters = Counters(step=40, recent_losses=[7.0])
    loaded_best = load_checkpoint(path, other, other_optimizer, loaded_counters)["best"]
    assert asdict(loaded_counters) == asdict(counters)
    assert loaded_best.keys() == best.keys()
    assert all(torch.equal(loaded_best[name], value) for name, value in best.items())
    # The same next step from both needs the same weights, moments and step counts.
    step(model, optimizer, family)
    step(other, other_optimizer, family)
    for (name, a), b in zip(model.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b), name
        for key, value in optimizer.state[a].items():
            assert torch.equal(value, other_optimizer.state[b][key]), (name, key)


def old_name(name: str) -> str:
    """Returns what version 0.1 called a tensor of a checkpoint."""
    name = name.replace("encoder.query_relations.", "query_relations.")
    name = re.sub(
        r"encoder\.(layers\.\d)\.query_key\.",
        r"\1.query_key_stream.relation_vectors.project.",
        name,
    )
    return re.sub(
        r"encoder\.(layers\.\d)\.value\.(\d)\.",
        r"\1.value_stream.relation_vectors.\2.project.",
        name,
    )


def test_a_checkpoint_of_version_0_1_goes_on_with_its_moments(
    tmp_path: Path, family: KnowledgeGraph
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimizer = fresh(family, 0)
    step(model, optimizer, family)
    save_checkpoint(path, model, optimizer, {}, Counters(step=1))
    tensors, metadata = read_tensors(path)
    write_tensors(path, {old_name(name): value for name, value in tensors.items()}, metadata)
    assert not any("encoder." in name for name in read_tensors(path)[0])
    other, other_optimizer = fresh(family, 1)
    load_checkpoint(path, other, other_optimizer, Counters())
    for (name, a), b in zip(model.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b), name
        assert other_optimizer.state[b].keys() == optimizer.state[a].keys(), name
        for key, value in optimizer.state[a].items():
            assert torch.equal(value, other_optimizer.state[b][key]), (name, key)


def test_a_checkpoint_before_the_first_step_has_no_moments(
    tmp_path: Path, family: KnowledgeGraph
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimizer = fresh(family, 0)
    save_checkpoint(path, model, optimizer, {}, Counters())
    other, other_optimizer = fresh(family, 1)
    assert load_checkpoint(path, other, other_optimizer, Counters()) == {}
    assert not other_optimizer.state
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True)
    )


def test_a_missing_checkpoint_is_named(tmp_path: Path, family: KnowledgeGraph) -> None:
    with pytest.raises(BundleError, match=r"checkpoint\.safetensors"):
        load_checkpoint(tmp_path / "checkpoint.safetensors", *fresh(family, 0), Counters())


@pytest.mark.parametrize("metadata", [{}, {"counters": "not json"}, {"counters": '{"steps": 1}'}])
def test_a_file_that_is_no_checkpoint_is_refused(
    tmp_path: Path, family: KnowledgeGraph, metadata: dict[str, str]
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimizer = fresh(family, 0)
    write_tensors(path, model.state_dict(), metadata)
    with pytest.raises(BundleError, match="Expected a checkpoint to resume from"):
        load_checkpoint(path, model, optimizer, Counters())


def test_weights_of_other_settings_are_refused(tmp_path: Path, family: KnowledgeGraph) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, *fresh(family, 0), {}, Counters())
    with pytest.raises(BundleError, match=r"checkpoint\.safetensors"):
        load_checkpoint(path, *fresh(family, 0, hidden_dim=16), Counters())


def test_counters_are_replaced_and_the_rest_is_kept(tmp_path: Path, family: KnowledgeGraph) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimizer = fresh(family, 0)
    step(model, optimizer, family)
    save_checkpoint(path, model, optimizer, {}, Counters(step=7, finished=True))
    before, _ = read_tensors(path)
    counters = read_counters(path)
    counters.elapsed_seconds, counters.validations_since_record = 30.0, 2
    counters.begin_part()
    write_counters(path, counters)
    again = read_counters(path)
    assert (again.finished, again.part_step, again.part_seconds) == (False, 7, 30.0)
    assert again.validations_since_record == 0
    after, _ = read_tensors(path)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_counters_are_read_without_a_model(tmp_path: Path, family: KnowledgeGraph) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimizer = fresh(family, 0)
    counters = Counters(step=7, epoch=2, finished=True)
    save_checkpoint(path, model, optimizer, {}, counters)
    assert read_counters(path) == counters
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(BundleError):
        read_counters(path)


def test_epochs_are_counted_in_steps_where_their_length_is_known() -> None:
    assert Counters(step=15, epoch=3, steps_per_epoch=10).epochs_done == 1.5
    assert Counters(step=15, epoch=3).epochs_done == 3  # a checkpoint from before it was recorded
