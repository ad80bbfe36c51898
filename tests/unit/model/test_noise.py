import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.noise import identity_noise


def test_every_layer_draw_and_seed_has_noise_of_its_own(family: KnowledgeGraph) -> None:
    config = ModelConfig(num_layers=3, noise_dim=2)
    noise = identity_noise(config, family.entity_keys, seed=0)
    assert noise.shape == (3, 6, 2)
    assert noise.dtype == torch.float32
    others = [
        identity_noise(config, family.entity_keys, seed=0, draw=1),
        identity_noise(config, family.entity_keys, seed=0, draw="inference-0"),
        identity_noise(config, family.entity_keys, seed=1),
    ]
    together = torch.cat([noise, *others])
    assert len(torch.unique(together)) == together.numel()


def test_noise_is_repeatable_and_follows_names(family: KnowledgeGraph) -> None:
    config = ModelConfig(num_layers=2)
    noise = identity_noise(config, family.entity_keys, seed=5, draw=9)
    assert torch.equal(noise, identity_noise(config, family.entity_keys, seed=5, draw=9))
    backwards = identity_noise(config, family.entity_keys[::-1].copy(), seed=5, draw=9)
    assert torch.equal(backwards, noise.flip(1))


def test_the_scale_multiplies_the_noise(family: KnowledgeGraph) -> None:
    narrow = identity_noise(ModelConfig(noise_scale=1.0), family.entity_keys, seed=0)
    wide = identity_noise(ModelConfig(noise_scale=4.0), family.entity_keys, seed=0)
    assert torch.equal(wide, 4 * narrow)
    silent = identity_noise(ModelConfig(noise_scale=0.0), family.entity_keys, seed=0)
    assert not silent.any()
