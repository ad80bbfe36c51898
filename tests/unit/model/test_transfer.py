import torch

from knowformer.graph.inverse import inverse_of
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.transfer import transfer_weights
from knowformer.model.weights import tensors_in

CONFIG = ModelConfig(hidden_dim=8, num_layers=2, num_query_key_hops=1, num_value_hops=2)


def model_of(relations: Vocabulary, seed: int) -> KnowFormer:
    model = KnowFormer(CONFIG, 2 * len(relations))
    initialize(model, generator=torch.Generator().manual_seed(seed))
    return model


def relations(*names: str) -> Vocabulary:
    return Vocabulary(names, kind="relation")


def test_relations_keep_their_vectors_wherever_they_stand() -> None:
    old, new = relations("likes", "knows", "owns"), relations("owns", "fears", "likes")
    source, model = model_of(old, 0), model_of(new, 1)
    untouched = model_of(new, 1)
    transfer_weights(source, old, model, new)
    before = {"owns": 2, "likes": 0}
    now = {"owns": 0, "likes": 2}
    for asked in before:
        for is_asked_backwards in (False, True):
            at_old, at_new = before[asked], now[asked]
            if is_asked_backwards:
                at_old, at_new = inverse_of(at_old, 3), inverse_of(at_new, 3)
            theirs = tensors_in(source.encoder(torch.tensor([at_old])))
            ours = tensors_in(model.encoder(torch.tensor([at_new])))
            for a, b in zip(theirs, ours, strict=True):
                for name in before:
                    torch.testing.assert_close(a[0, before[name]], b[0, now[name]])
                    there, here = inverse_of(before[name], 3), inverse_of(now[name], 3)
                    torch.testing.assert_close(a[0, there], b[0, here])
    table = model.encoder.query_relations.weight
    assert torch.equal(table[1], untouched.encoder.query_relations.weight[1])
    assert torch.equal(table[4], untouched.encoder.query_relations.weight[4])
    assert torch.equal(model.score_last.weight, source.score_last.weight)


def test_the_same_relations_give_the_same_model() -> None:
    names = relations("a", "b")
    source, model = model_of(names, 0), model_of(names, 1)
    transfer_weights(source, names, model, names)
    weights = model.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in source.state_dict().items())
