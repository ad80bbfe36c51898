"""The paper's two theorems, checked numerically.

Theorem 1: with s = q.k in [-1, 1], the linear similarity 1 + s differs from exp(s) by less than
e^gamma / 2, gamma in (0, 1) being where Taylor's remainder is taken: exp(s) = 1 + s + exp(gamma s)
s^2 / 2. At s = 1 the two are equal, so the bound is tight there.

Theorem 2: what the test RA-WL2 tells apart, an attention layer can tell apart; and more, since
attention reaches entities that no path does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.inverse import num_with_inverses
from knowformer.kernels.interface import QueryView, queries_and_keys
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.noise import identity_noise
from knowformer.model.run import Probe
from knowformer.seeding import generator

LARGEST_ERROR = torch.e - 2  # of |1 + s - exp(s)| on [-1, 1], at s = 1
NUM_STORED = 400  # points for a picture


def approximation_error(s: Float[Tensor, " P"]) -> Float[Tensor, " P"]:
    """Returns |1 + s - exp(s)|."""
    return (torch.expm1(s) - s).abs()


def remainder_place(s: Float[Tensor, " P"]) -> Float[Tensor, " P"]:
    """Returns gamma, where Taylor's remainder is taken; its limit 1/3 near s = 0."""
    s = s.double()
    safe = torch.where(s.abs() < 1e-4, torch.ones_like(s), s)
    place = (2 * (torch.expm1(safe) - safe) / safe.square()).log() / safe
    return torch.where(s.abs() < 1e-4, torch.full_like(s, 1 / 3), place)


def error_bound(s: Float[Tensor, " P"]) -> Float[Tensor, " P"]:
    """Returns theorem 1's e^gamma / 2."""
    return remainder_place(s).exp() / 2


def measure_bound(
    model: KnowFormer, split: Split, *, seed: int, num_queries: int
) -> dict[str, Any]:
    """Measures theorem 1 on the similarities that a model computes for the split's questions."""
    sample = generator(seed, "similarities")
    graph, facts = split.graph, split.facts[:num_queries]
    noise = identity_noise(model.config, graph.entity_keys, seed=seed, draw="inference-0")
    weights = model.pack(noise)
    similarities: list[Tensor] = []
    with torch.inference_mode():
        for fact in facts:
            probe, view = Probe(), QueryView.whole(graph.adjacency.edges, fact[:1])
            model(view, fact[1:2], identity_noise=noise, probe=probe)
            for states, layer in zip(probe.query_key_states, weights.layers, strict=True):
                q, k = queries_and_keys(states[None], layer.attend, weights.num_heads)
                one, other = torch.randint(len(states), (2, 4096), generator=sample)
                similarities.append((q[:, :, one] * k[:, :, other]).sum(-1).flatten())
    s = torch.cat(similarities).double().clamp(-1, 1)
    error, bound = approximation_error(s), error_bound(s)
    ordered = s.sort().values
    shown = torch.randperm(len(s), generator=sample)[:NUM_STORED]
    return {
        "num_entities": len(graph.entities),
        "num_pairs": len(s),
        "largest_error": error.max().item(),
        "mean_error": error.mean().item(),
        "mean_bound": bound.mean().item(),
        "pairs_above_bound": int((error > bound * (1 + 1e-9)).sum()),
        "largest_possible_error": LARGEST_ERROR,
        "similarity_quartiles": [ordered[len(s) * n // 4].item() for n in (1, 2, 3)],
        "sample": [
            [round(a, 5), round(b, 5)]
            for a, b in zip(s[shown].tolist(), error[shown].tolist(), strict=True)
        ],
    }


@dataclass
class Palette:
    """Gives every distinct description a colour of its own: the injective map of RA-WL2."""

    numbers: dict[Any, int] = field(default_factory=dict[Any, int])

    def colour(self, description: Any) -> int:
        """Returns the description's colour, a new one if it was never seen."""
        return self.numbers.setdefault(description, len(self.numbers))


def ra_wl2(adjacency: Adjacency, head: int, *, rounds: int, palette: Palette) -> list[int]:
    """Returns the colour that RA-WL2 gives to (head, u) for every entity u.

    One round joins an entity's colour with the multiset of (relation, colour) of its senders, the
    facts' inverses included. Colours of several graphs compare if they share a palette.
    """
    senders: list[list[tuple[int, int]]] = [[] for _ in range(adjacency.num_entities)]
    edges = zip(
        adjacency.sender.tolist(),
        adjacency.relation.tolist(),
        adjacency.receiver.tolist(),
        strict=True,
    )
    for sender, relation, receiver in edges:
        senders[receiver].append((sender, relation))
    colours = [palette.colour(("start", u == head)) for u in range(adjacency.num_entities)]
    for _ in range(rounds):
        colours = [
            palette.colour((colours[u], tuple(sorted((r, colours[v]) for v, r in senders[u]))))
            for u in range(adjacency.num_entities)
        ]
    return colours


def random_adjacency(seed: int, number: int, *, num_entities: int = 8) -> Adjacency:
    """Returns a small sparse graph with two relations; every fourth is a star, all symmetry."""
    draw = generator(seed, "graph", number)
    if number % 4 == 0:
        facts = torch.tensor([[1, 0, u] for u in range(num_entities) if u != 1])
    else:
        columns = [torch.randint(n, (9,), generator=draw) for n in (num_entities, 2, num_entities)]
        facts = torch.unique(torch.stack(columns, 1), dim=0)
    return Adjacency(facts, num_entities=num_entities, num_relations=2)


def one_layer(seed: int, *, attention: bool, hops: int) -> KnowFormer:
    """Returns a model of one layer in double precision with random weights, and no noise."""
    config = ModelConfig(
        hidden_dim=16,
        num_heads=1,
        num_layers=1,
        num_value_hops=hops,
        attention=attention,
        noise_scale=0.0,
        dropout=0.0,
    )
    model = KnowFormer(config, num_with_inverses(2), backend="reference")
    initialize(model, generator=generator(seed, "init"))
    return model.double()


def entity_scores(model: KnowFormer, adjacency: Adjacency, head: int) -> Float[Tensor, " V"]:
    """Returns a double-precision score per entity for the query (head, relation 0, ?)."""
    noise = torch.zeros(1, adjacency.num_entities, model.config.noise_width)
    with torch.inference_mode():
        view = QueryView.whole(adjacency.edges, torch.tensor([head]))
        return model(view, torch.tensor([0]), identity_noise=noise)


def measure_expressivity(*, seed: int, num_graphs: int, rounds: int = 3) -> dict[str, Any]:
    """Compares RA-WL2 with one layer of random weights, on pairs of entities of random graphs."""
    model, palette = one_layer(seed, attention=True, hops=rounds), Palette()
    views: list[tuple[list[int], Tensor]] = []
    for number in range(num_graphs):
        adjacency = random_adjacency(seed, number)
        colours = ra_wl2(adjacency, 0, rounds=rounds, palette=palette)
        views.append((colours, entity_scores(model, adjacency, 0)))
    distinct, alike = _Gaps(), _Gaps()
    for colours, scores in views:
        for u, w in combinations(range(len(colours)), 2):
            kind = distinct if colours[u] != colours[w] else alike
            kind.add(abs((scores[u] - scores[w]).item()))
    for (colours, scores), (other_colours, other_scores) in combinations(views, 2):
        for u, w in product(range(len(colours)), repeat=2):
            if colours[u] != other_colours[w]:
                distinct.add(abs((scores[u] - other_scores[w]).item()))
    return {
        "num_graphs": num_graphs,
        "rounds": rounds,
        "pairs_told_apart_by_ra_wl2": distinct.count,
        "of_these_by_the_layer": distinct.apart,
        "smallest_difference": distinct.smallest,
        "pairs_alike_in_one_graph": alike.count,
        "of_these_told_apart_by_the_layer": alike.apart,
        "beyond_paths": _beyond_paths(seed, num_graphs, rounds),
    }


@dataclass
class _Gaps:
    """Differences of scores, and how many of them are more than rounding."""

    count: int = 0
    apart: int = 0
    smallest: float = float("inf")
    rounding: float = 1e-11

    def add(self, difference: float) -> None:
        self.count += 1
        self.apart += difference > self.rounding
        self.smallest = min(self.smallest, difference)


def _beyond_paths(seed: int, num_graphs: int, rounds: int) -> dict[str, int]:
    """Entities that no path links to the head, in graphs that differ around the head alone."""
    counts = {"pairs": 0, "by_ra_wl2": 0, "by_the_layer": 0, "by_the_layer_without_attention": 0}
    models = {
        "by_the_layer": one_layer(seed, attention=True, hops=rounds),
        "by_the_layer_without_attention": one_layer(seed, attention=False, hops=rounds),
    }
    for one, other, far in _unlinked_pairs(seed, num_graphs):
        palette = Palette()
        colours = [ra_wl2(graph, 0, rounds=rounds, palette=palette) for graph in (one, other)]
        counts["pairs"] += len(far)
        counts["by_ra_wl2"] += sum(colours[0][u] != colours[1][u] for u in far.tolist())
        for name, model in models.items():
            gap = entity_scores(model, one, 0)[far] - entity_scores(model, other, 0)[far]
            counts[name] += int((gap.abs() > 1e-11).sum())
    return counts


def _unlinked_pairs(
    seed: int, num_pairs: int
) -> Iterator[tuple[Adjacency, Adjacency, Int[Tensor, " U"]]]:
    """Yields two graphs with a random far part in common; the head's part is a path or a star."""
    near = 5
    path = [[u, 0, u + 1] for u in range(near - 1)]
    star = [[0, 0, u + 1] for u in range(near - 1)]
    for number in range(num_pairs):
        draw = generator(seed, "far_part", number)
        columns = [torch.randint(n, (6,), generator=draw) for n in (5, 2, 5)]
        shared = torch.stack(columns, 1) + torch.tensor([near, 0, near])
        graphs = [
            Adjacency(
                torch.cat([torch.tensor(part), shared]), num_entities=near + 5, num_relations=2
            )
            for part in (path, star)
        ]
        yield graphs[0], graphs[1], torch.arange(near, near + 5)
