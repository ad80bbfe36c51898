"""Relation categories 1-1, 1-n, n-1 and n-n, by the average number of partners."""

from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.fact_index import KeyLayout, sorted_distinct

RelationCategory = Literal["1-1", "1-n", "n-1", "n-n"]
CATEGORIES: tuple[RelationCategory, ...] = ("1-1", "1-n", "n-1", "n-n")

# More than 1.5 partners on average count as many (Bordes et al., 2013).
MANY = 1.5


def relation_categories(facts: Int[Tensor, "N 3"], num_relations: int) -> list[RelationCategory]:
    """Returns the category of each named relation, judged by the training facts.

    ``1-n`` means that one head has many tails.
    """
    layout = KeyLayout.around(facts.numpy())
    distinct = layout.facts(sorted_distinct(layout.keys(facts.numpy())))
    heads, relations, tails = torch.from_numpy(distinct).unbind(1)
    counts = torch.bincount(relations, minlength=num_relations)
    tails_per_head = counts / _distinct(relations, heads, num_relations)
    heads_per_tail = counts / _distinct(relations, tails, num_relations)
    numbers: list[int] = (2 * (heads_per_tail > MANY) + (tails_per_head > MANY)).tolist()
    return [CATEGORIES[number] for number in numbers]


def _distinct(
    relations: Int[Tensor, " N"], partners: Int[Tensor, " N"], num_relations: int
) -> Int[Tensor, " R"]:
    """Counts the distinct partners of each relation; at least one, to divide by."""
    width = int(partners.max()) + 1 if len(partners) else 1
    pairs: Tensor = torch.unique(relations * width + partners)
    return torch.bincount(pairs // width, minlength=num_relations).clamp(min=1)
