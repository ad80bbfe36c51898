from pathlib import Path

import pytest
import torch

from knowformer.data.dataset import Dataset
from knowformer.errors import BundleError
from knowformer.model.knowformer import KnowFormer
from knowformer.runs.stored_weights import load_model
from knowformer.storage.tensor_files import write_tensors
from knowformer.training.settings_file import build_config

LARGE = 2**16  # wide: its weights would take terabytes


def test_weights_are_compared_with_the_settings_before_memory_is_taken(
    tmp_path: Path, ring: Dataset
) -> None:
    path = tmp_path / "model.safetensors"
    small = build_config(settings={"model.hidden_dim": 16, "model.similarity": "random_features"})
    model = KnowFormer.initialized(small.model, ring.relations)
    write_tensors(path, model.state_dict(), {"some": "thing"})
    loaded, metadata = load_model(path, small, ring.relations)
    assert metadata == {"some": "thing"}
    own = [*loaded.parameters(), *loaded.buffers()]
    others = [*model.parameters(), *model.buffers()]
    assert all(torch.equal(a, b) for a, b in zip(own, others, strict=True))
    assert all(weight.requires_grad for weight in loaded.parameters())
    wide = small.model.model_copy(update={"hidden_dim": LARGE})
    with pytest.raises(BundleError, match="got others"):
        load_model(path, small.model_copy(update={"model": wide}), ring.relations)


def test_weights_of_another_type_or_that_are_no_numbers_are_refused(
    tmp_path: Path, ring: Dataset
) -> None:
    path, config = tmp_path / "model.safetensors", build_config()
    weights = KnowFormer.initialized(config.model, ring.relations).state_dict()
    write_tensors(path, {name: each.double() for name, each in weights.items()})
    with pytest.raises(BundleError, match="got others"):
        load_model(path, config, ring.relations)
    weights["score_last.bias"] = torch.tensor([torch.nan])
    write_tensors(path, weights)
    with pytest.raises(BundleError, match=r"NaN or infinity in 'score_last\.bias'"):
        load_model(path, config, ring.relations)
    weights["score_last.bias"] = torch.tensor([3e38])
    weights["score_last.weight"].fill_(3e38)  # the sum of these is infinite, none of them is
    write_tensors(path, weights)
    load_model(path, config, ring.relations)
