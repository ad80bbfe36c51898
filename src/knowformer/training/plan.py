"""Estimates of a run before it starts: memory and time per epoch."""

from dataclasses import dataclass

from knowformer.errors import ConfigError
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.micro_batches import micro_batch_size
from knowformer.system.environment import total_memory
from knowformer.system.workers import available_cores
from knowformer.training.config import RunConfig
from knowformer.training.events import PlanEvent

# Fitted to the peaks of benchmarks/results, none of which is above its prediction.
PROCESS_BYTES = 460e6  # Python, torch, compiled kernels, what the allocator keeps in reserve
COPIES_OF_WEIGHTS = 6  # weights, gradients, Adam's two, best ones, packed
COPIES_OF_VECTORS = 4  # relation vectors and gradients, of the batch and of micro-batches
COPIES_OF_EDGES = 3  # sorted, compacted, and indices in between
WORKING_TENSORS = 8  # gradients in flight of one micro-batch
TENSORS_PER_QUERY = 13  # of a batch: gradients that wait for the others, and gaps between buffers
FORWARD_COST = 0.23  # of a query that is only scored, relative to one that is trained


@dataclass(frozen=True)
class Plan:
    """What a run will take."""

    batch_size: int
    micro_batch_size: int
    threads: int
    memory_bytes: float
    available_bytes: float | None
    num_queries: int
    seconds_per_epoch: float
    num_entities: int
    num_seen: int  # of them, by each query

    @property
    def fits(self) -> bool:
        """Whether the memory suffices; True if the free memory is unknown."""
        return self.available_bytes is None or self.memory_bytes < self.available_bytes

    def event(self) -> PlanEvent:
        """Returns the event that reports this plan."""
        return {
            "kind": "plan",
            "fits": self.fits,
            "batch_size": self.batch_size,
            "micro_batch_size": self.micro_batch_size,
            "threads": self.threads,
            "memory_bytes": self.memory_bytes,
            "available_bytes": self.available_bytes,
            "num_queries": self.num_queries,
            "seconds_per_epoch": self.seconds_per_epoch,
            "num_entities": self.num_entities,
            "num_seen": self.num_seen,
        }


def predicted_memory(config: RunConfig, graph: KnowledgeGraph, batch_size: int) -> float:
    """Returns the peak memory of training in bytes."""
    model, training = config.model, config.training
    num_entities = model.num_seen(len(graph.entities))
    if training.region_size and not training.whole_graph_share:
        num_entities = min(num_entities, training.region_size)
    num_relations = num_with_inverses(len(graph.relations))
    states = 4.0 * num_entities * model.hidden_dim  # of one query
    micro_batch = micro_batch_size(batch_size, num_entities, model.hidden_dim)
    num_micro_batches = -(-batch_size // micro_batch)
    in_flight = micro_batch * min(config.threads or available_cores(), num_micro_batches)
    # The first query stream of a batch: states, gradients, and tensors saved for its backward.
    shared = min(batch_size, num_relations) * (3 + 2 * model.query_key_hops)
    shared += batch_size * TENSORS_PER_QUERY
    vectors = 4.0 * batch_size * num_relations * model.hidden_dim * _vector_sets(model)
    weights = 4.0 * _relation_weights(model, num_relations)
    edges = 48.0 * graph.adjacency.num_edges
    return (
        PROCESS_BYTES
        + in_flight * states * (_saved_tensors(model) + WORKING_TENSORS)
        + shared * states
        + COPIES_OF_VECTORS * vectors
        + COPIES_OF_WEIGHTS * weights
        + COPIES_OF_EDGES * edges
    )


def check_memory(config: RunConfig, graph: KnowledgeGraph) -> None:
    """Refuses a run that this machine has not the memory for, before anything is allocated.

    Raises:
        ConfigError: the message says how much it would take.
    """
    size, total = config.training.batch_size or 1, total_memory()
    needed = predicted_memory(config, graph, size)
    if total is None or needed <= total:
        return
    model, relations = config.model, len(graph.relations)
    num_weights = _relation_weights(model, num_with_inverses(relations))
    raise ConfigError(
        f"Expected a run that fits into the {total / 1e9:,.0f} GB of this machine, got one that "
        f"takes about {needed / 1e9:,.0f} GB: {num_weights:.2g} weights for {relations:,} "
        f"relations at model.hidden_dim {model.hidden_dim}, and {size:,} queries a step that see "
        f"{model.num_seen(len(graph.entities)):,} entities.{_advice(config, graph)}"
    )


def _advice(config: RunConfig, graph: KnowledgeGraph) -> str:
    if config.model.view_of(len(graph.entities)) is None and not config.training.region_size:
        return " Let each query see a part of the graph with `model.view_size`, such as 1000."
    return (
        " Lower model.hidden_dim, model.num_layers, model.view_size or training.batch_size, or "
        "merge relations."
    )


def _relation_weights(model: ModelConfig, num_relations: int) -> float:
    """Returns how many weights map a query's relation to the vectors of all relations."""
    return (model.hidden_dim + 1.0) * num_relations * model.hidden_dim * _vector_sets(model)


def _vector_sets(model: ModelConfig) -> int:
    """Returns how many vectors the model makes of each relation."""
    return model.layers * (model.num_value_hops + 1)


def _saved_tensors(model: ModelConfig) -> float:
    """Returns the state tensors of a query saved for backward: inputs, and two for every hop."""
    hops = model.query_key_hops + model.num_value_hops
    return model.layers * (2 * hops + 3.25)  # a quarter: dropout's bytes
