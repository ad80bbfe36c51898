import pytest
import torch

from knowformer.choices import PresetName
from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.message_passing import Hop


@pytest.mark.parametrize("preset", PRESETS)
def test_a_hop_hands_its_own_weights_to_the_kernel(preset: PresetName) -> None:
    config = ModelConfig.model_validate(PRESETS[preset])
    hop = Hop(config)
    for parameter in hop.parameters():
        torch.nn.init.normal_(parameter)
    packed = hop.pack()
    assert packed.norm == config.update_norm
    norm = [] if hop.norm is None else [hop.norm.weight, hop.norm.bias]
    assert len(packed.matrices) == config.update_layers
    assert torch.equal(packed.matrices, torch.stack([linear.weight.T for linear in hop.update]))
    biases = [linear.bias for linear in hop.update]
    assert torch.equal(packed.vectors, torch.stack([hop.self_weight, *biases, *norm]))
