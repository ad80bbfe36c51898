"""Defaults that depend on the graph, chosen before a run starts where its settings are open.

How much of the graph a query sees, how deep the model is, which edges are hidden from a query, how
long the run is and how many queries a step takes. Training and validation facts decide; test facts
have no say.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from knowformer.audit.links import are_links_misleading, num_linked, num_linked_twice
from knowformer.data.dataset import Split, TrainingSplits
from knowformer.data.holdout import sample_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.queries.known_answers import KnownAnswers
from knowformer.seeding import generator
from knowformer.system.environment import available_memory
from knowformer.training.config import MOST_EPOCHS, RunConfig
from knowformer.training.plan import predicted_memory
from knowformer.training.sampling.edge_removal import HiddenEdges
from knowformer.training.settings_file import flat_settings
from knowformer.views.coverage import coverage
from knowformer.views.settings import ViewSettings

# None until they are chosen.
LEFT_OPEN = (
    "model.view_size",
    "model.num_layers",
    "model.num_query_key_hops",
    "training.hide",
    "training.max_epochs",
    "training.batch_size",
)
# Layers and query hops where queries see views: in the same time, more queries teach more.
DEPTH_IN_VIEWS = (2, 1)
PREFERRED_BATCH_SIZE = 16  # small enough that an epoch is many steps
USABLE_FRACTION = 0.7  # of free memory, so that a run does not push others out
VIEW_SIZES = (500, 1000, 2000, 4000)  # entities that a query may see of a large graph
WHOLE_GRAPH_LIMIT = 5000  # entities of a graph that queries see whole
WORTH_DOUBLING = 0.05  # of the validation answers; fewer are not worth twice the time
# Entities seen at most in runs of up to so many minutes: many queries teach more than large views.
LARGEST_VIEWS = ((15, 1000), (60, 2000), (math.inf, 4000))
LARGEST_VIEW = 2000  # where a run has no limit in minutes
NUM_COVERAGE_FACTS = 100
LESS_DEEP = "less deep where queries see views: more of them fit into the time, and teach more"
ENOUGH_QUERIES = 400_000  # of a run: about an hour on two cores where queries see 1,000 entities


class ViewSize(NamedTuple):
    """How many entities a query sees, 0 for all, and why."""

    size: int
    why: str


class Hidden(NamedTuple):
    """Which edges are hidden from a query, and why."""

    edges: HiddenEdges
    why: str


class Completed(NamedTuple):
    """Settings that leave nothing open, and what was chosen and why, a line each, if anything."""

    config: RunConfig
    note: str


def complete(config: RunConfig, splits: TrainingSplits) -> Completed:
    """Chooses the settings that are open; a resumed run has the same on any machine."""
    graph, training, model = splits.train.graph, config.training, config.model
    why: dict[str, str] = {}
    if model.view_size is None:
        view_size, why["model.view_size"] = choose_view_size(config, splits.valid)
        model = model.model_copy(update={"view_size": view_size})
    is_whole = model.view_of(len(graph.entities)) is None
    why["model.num_layers"] = "as in the paper" if is_whole else LESS_DEEP
    model = model.model_copy(update=choose_depth(model, len(graph.entities)))
    hide = training.hide
    if hide is None:
        hide, why["training.hide"] = choose_hidden_edges(splits)
    epochs = training.max_epochs or choose_epochs(splits.train)
    training = training.model_copy(update={"hide": hide, "max_epochs": epochs})
    chosen = config.model_copy(update={"model": model, "training": training})
    size = training.batch_size or choose_batch_size(chosen, graph)
    training = training.model_copy(update={"batch_size": size})
    chosen = chosen.model_copy(update={"training": training})
    return Completed(chosen, _note_of(config, chosen, why))


def _note_of(asked: RunConfig, chosen: RunConfig, why: dict[str, str]) -> str:
    """Returns the settings that were left open, a line each."""
    why = {
        **why,
        "training.max_epochs": "at most; the best weights on the way are kept",
        "training.batch_size": "queries a step",
    }
    before, after = flat_settings(asked), flat_settings(chosen)
    lines = [
        f"  {key} = {after[key]}" + (f": {why[key]}" if key in why else "")
        for key in LEFT_OPEN
        if before[key] is None
    ]
    return "\n".join(["Chosen for this graph, as no setting says it:", *lines]) if lines else ""


def choose_batch_size(config: RunConfig, graph: KnowledgeGraph) -> int:
    """Returns how many queries per step fit into this machine's free memory, at most sixteen."""
    available, size = available_memory(), PREFERRED_BATCH_SIZE
    while size > 1 and available is not None:
        if predicted_memory(config, graph, size) < USABLE_FRACTION * available:
            break
        size //= 2
    return size


def choose_view_size(config: RunConfig, valid: Split) -> ViewSize:
    """Returns how many entities a query sees: a part of a large graph, all of a small one.

    Where the graph is hardly larger than a view, all of it takes no longer and hides no answer. A
    view is doubled where that brings in a good many more of the validation answers and the run has
    the minutes, as it doubles the cost too. Decision 0024 has the evidence.
    """
    graph = valid.graph
    if config.training.region_size:
        return ViewSize(0, "a query sees all of its region")
    if config.training.loss == "pairs":
        return ViewSize(0, "unlinked pairs lie anywhere, so a query sees the whole graph")
    if len(graph.entities) <= WHOLE_GRAPH_LIMIT:
        return ViewSize(0, f"a query sees the whole graph, up to {WHOLE_GRAPH_LIMIT:,} entities")
    few = min(NUM_COVERAGE_FACTS, len(valid.facts))
    if not few:
        return ViewSize(VIEW_SIZES[-2], "entities that a query sees")
    facts = sample_facts(valid, few, generator=generator(config.seed, "coverage")).facts
    inside = [coverage(graph, facts, _views_of(config, size)) for size in VIEW_SIZES]
    gains = [more - less for less, more in pairwise(inside)]
    largest = VIEW_SIZES.index(_largest_view(config.training.max_minutes))
    worth = [n for n, gain in enumerate(gains, start=1) if gain >= WORTH_DOUBLING]
    chosen = max((n for n in worth if n <= largest), default=0)
    too_slow = ", which takes more minutes" if worth and worth[-1] > chosen else ""
    return ViewSize(
        VIEW_SIZES[chosen],
        "entities that a query sees, the nearest ones: they hold "
        f"{inside[chosen]:.0%} of the validation answers; {VIEW_SIZES[-1]:,} would hold "
        f"{inside[-1]:.0%}{too_slow}",
    )


def choose_depth(model: ModelConfig, num_entities: int) -> dict[str, int]:
    """Returns layers and query hops, where they are open: fewer where a query sees a view."""
    is_whole = model.view_of(num_entities) is None
    layers, hops = (model.layers, model.query_key_hops) if is_whole else DEPTH_IN_VIEWS
    return {
        "num_layers": model.num_layers or layers,
        "num_query_key_hops": hops if model.num_query_key_hops is None else model.query_key_hops,
    }


def _largest_view(minutes: float | None) -> int:
    if minutes is None:
        return LARGEST_VIEW
    return next(size for limit, size in LARGEST_VIEWS if minutes <= limit)


def _views_of(config: RunConfig, size: int) -> ViewSettings:
    model = config.model
    return ViewSettings(size=size, alpha=model.view_alpha, prior_weight=model.view_prior)


def choose_hidden_edges(splits: TrainingSplits) -> Hidden:
    """Returns ``links`` where training facts have links that validation facts lack.

    A model would learn to look for them, in vain.
    """
    train, valid = splits.train, splits.valid
    if not len(train.facts) or not len(valid.facts):
        return Hidden("facts", "the asked ones")
    facts, num_entities = train.facts.numpy(), len(train.graph.entities)
    in_training = num_linked_twice(facts, num_entities) / len(facts)
    evidence, num_entities = valid.graph.facts.numpy(), len(valid.graph.entities)
    held_out = num_linked(valid.facts.numpy(), evidence, num_entities) / len(valid.facts)
    compared = f"{in_training:.0%} of the training facts and {held_out:.0%} of the validation facts"
    if are_links_misleading(in_training, held_out):
        return Hidden(
            "links",
            "a training query sees no link between its head and its answers, as "
            f"{compared} have a second one",
        )
    return Hidden("facts", f"a training query does not see its own; {compared} have a second link")


def choose_epochs(train: Split) -> float:
    """Returns how many epochs to train: fewer on a large graph, where each of them teaches more."""
    num_queries = len(KnownAnswers.of_split(train).queries())
    epochs = ENOUGH_QUERIES / max(1, num_queries)
    return MOST_EPOCHS if epochs > MOST_EPOCHS else float(f"{epochs:.2g}")
