"""Weights of one model for the relations of another graph, matched by name."""

import torch
from torch import Tensor

from knowformer.graph.inverse import inverse_of, num_with_inverses
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer

OF_RELATIONS = "encoder."  # parameters with a row, or a block of rows, for every relation


def transfer_weights(
    source: KnowFormer, relations: Vocabulary, model: KnowFormer, model_relations: Vocabulary
) -> None:
    """Copies weights into a model of the same settings; relations it has alone keep theirs.

    Args:
        source: the model to copy from.
        relations: its relations.
        model: the model to copy into, initialised.
        model_relations: its relations.
    """
    if source.config.relation_encoder == "graph":
        model.load_state_dict(source.state_dict())  # no weight belongs to a relation
        return
    to_rows, from_rows = _matching_rows(relations, model_relations)
    weights = model.state_dict()
    for name, given in source.state_dict().items():
        if name.startswith(OF_RELATIONS):
            here = weights[name].reshape(num_with_inverses(len(model_relations)), -1).clone()
            here[to_rows] = given.reshape(num_with_inverses(len(relations)), -1)[from_rows]
            weights[name] = here.reshape(weights[name].shape)
        else:
            weights[name] = given
    model.load_state_dict(weights)


def _matching_rows(source: Vocabulary, target: Vocabulary) -> tuple[Tensor, Tensor]:
    """Returns the ids of shared relations and their inverses, in the target and the source."""
    shared = [name for name in target if name in source]
    to_rows = torch.tensor([target.id(name) for name in shared], dtype=torch.long)
    from_rows = torch.tensor([source.id(name) for name in shared], dtype=torch.long)
    return (
        torch.cat([to_rows, inverse_of(to_rows, len(target))]),
        torch.cat([from_rows, inverse_of(from_rows, len(source))]),
    )
