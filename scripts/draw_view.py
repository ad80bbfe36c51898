"""Draws docs/images/view.png: a real graph around one head, and the view of one of its queries.

    KNOWFORMER_DATA=DIR python scripts/draw_view.py

Entities stand on rings by their distance from the head, each in the sector of the one that it was
reached from. The question is the first validation fact whose answer is seen for its kind alone.
"""

from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from knowformer.data.dataset import Dataset
from knowformer.data.loading import load_dataset
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.plots.palette import BLUE, GREY, INK, ORANGE
from knowformer.storage.atomic_files import atomic_path
from knowformer.views.extractor import ViewExtractor
from knowformer.views.settings import ViewSettings

TARGET = Path(__file__).parent.parent / "docs" / "images" / "view.png"
GRAPH, SIZE = "wn18rr_v1", 200


def breadth_first(graph: KnowledgeGraph, head: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns every entity's distance from the head and the one that it was reached from."""
    facts = graph.facts.numpy()
    pairs = np.concatenate([facts[:, [0, 2]], facts[:, [2, 0]]])
    distance, parent = np.full((2, len(graph.entities)), -1)
    distance[head] = ring = 0
    while (reached := pairs[(distance[pairs[:, 0]] == ring) & (distance[pairs[:, 1]] < 0)]).size:
        ring += 1
        parent[reached[:, 1]], distance[reached[:, 1]] = reached[:, 0], ring
    return distance, parent


def place(distance: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Returns x and y: rings by distance, sectors by the number of entities further out."""
    rising = [at for at in np.argsort(distance, kind="stable") if distance[at] >= 0]
    weight = np.ones(len(distance))
    for at in reversed(rising[1:]):
        weight[parent[at]] += weight[at]
    start, used = np.zeros(len(distance)), np.zeros(len(distance))
    for at in rising[1:]:
        above = parent[at]
        start[at] = start[above] + used[above] / max(1.0, weight[above] - 1) * sector(
            weight, above, rising[0]
        )
        used[above] += weight[at]
    angle = start + [sector(weight, at, rising[0]) / 2 for at in range(len(distance))]
    radius = np.sqrt(np.maximum(distance, 0))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


def sector(weight: np.ndarray, at: int, head: int) -> float:
    """Returns the angle that an entity and all that was reached through it have."""
    return 2 * np.pi * min(1.0, weight[at] / (weight[head] - 1))


def choose(dataset: Dataset) -> tuple[int, int, int]:
    """Returns the first validation fact whose answer is in the view by the prior alone."""
    graph = dataset.train.graph
    for head, relation, tail in dataset.valid.facts.tolist():
        by_walks = members(graph, head, relation, prior_weight=0.0)
        if (
            tail in members(graph, head, relation) - by_walks
            and breadth_first(graph, head)[0][tail] > 0
        ):
            return head, relation, tail
    raise SystemExit("no validation fact fits")


def members(graph: KnowledgeGraph, head: int, relation: int, **settings: float) -> set[int]:
    """Returns the entities of a query's view."""
    extractor = ViewExtractor(
        graph.adjacency, graph.entity_keys, ViewSettings(size=SIZE, **settings)
    )
    views = extractor.extract(torch.tensor([head]), torch.tensor([relation]))
    return set(views.entities.tolist())


def main() -> None:
    """Draws the picture."""
    dataset = load_dataset(GRAPH)
    graph = dataset.train.graph
    head, relation, tail = choose(dataset)
    distance, parent = breadth_first(graph, head)
    at = place(distance, parent)
    inside = members(graph, head, relation)
    near = members(graph, head, relation, prior_weight=0.0) & inside
    figure = Figure(figsize=(7.2, 7.4), layout="constrained")
    axis = figure.subplots()
    ends = [(h, t) for h, _, t in graph.facts.tolist() if distance[h] >= 0 and distance[t] >= 0]
    is_seen = [h in inside and t in inside for h, t in ends]
    for seen, colour, width in ((False, GREY, 0.12), (True, INK, 0.8)):
        lines = [at[[h, t]] for (h, t), among in zip(ends, is_seen, strict=True) if among == seen]
        axis.add_collection(LineCollection(lines, colors=colour, linewidths=width, alpha=0.5))
    outside = set(np.flatnonzero(distance >= 0).tolist()) - inside
    kinds = [
        (outside, GREY, 3, f"not seen ({len(outside):,} entities)"),
        (
            inside - near,
            ORANGE,
            22,
            f"seen for its kind: a tail of the relation ({len(inside - near)})",
        ),
        (near, BLUE, 22, f"seen because walks from the head end there ({len(near)})"),
    ]
    for entities, colour, size, label in kinds:
        chosen = [entity for entity in entities if distance[entity] >= 0]
        axis.scatter(*at[chosen].T, s=size, color=colour, label=label, zorder=2, linewidths=0)
    for entity, marker, label in ((head, "s", "the head"), (tail, "*", "the answer")):
        axis.scatter(*at[entity], s=170, marker=marker, color=INK, label=label, zorder=3)
    name = graph.relations.names[relation]
    axis.set_title(
        f"The view of one query (h, {name}, ?) of {GRAPH}: {SIZE} entities", loc="left", fontsize=11
    )
    axis.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2)
    axis.set_aspect("equal")
    axis.axis("off")
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    with atomic_path(TARGET) as temporary, Image.open(drawn) as picture:
        picture.convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE).save(
            temporary, format="png", optimize=True
        )


if __name__ == "__main__":
    main()
