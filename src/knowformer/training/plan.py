"""What a run will take, told before it starts: batch size, memory and time."""

from dataclasses import dataclass

from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.micro_batches import micro_batch_size
from knowformer.system.environment import available_memory
from knowformer.system.workers import available_cores
from knowformer.training.config import RunConfig

PREFERRED_BATCH_SIZE = 16  # small enough that an epoch is many steps
USABLE_SHARE = 0.7  # of free memory, so that a run does not push others out
# Fitted to the peaks of benchmarks/results, so that none is above what was predicted.
PROCESS_BYTES = 460e6  # Python, torch, compiled kernels, what the allocator keeps in reserve
COPIES_OF_WEIGHTS = 6  # weights, gradients, Adam's two, best ones, packed
COPIES_OF_VECTORS = 4  # relation vectors and gradients, whole and by slice
COPIES_OF_EDGES = 3  # sorted, compacted, and indices in between
WORKING_TENSORS = 8  # gradients in flight of one slice
TENSORS_PER_QUERY = 13  # of a batch: gradients that wait for the others, and gaps between buffers
FORWARD_SHARE = 0.23  # of a training step's time, for a query that is only scored


@dataclass(frozen=True)
class Plan:
    """How a run will go."""

    batch_size: int
    slice_size: int
    threads: int
    memory_bytes: float
    available_bytes: float | None
    num_queries: int
    seconds_per_epoch: float

    @property
    def fits(self) -> bool:
        """Whether memory is enough, as far as that is known."""
        return self.available_bytes is None or self.memory_bytes < self.available_bytes


def choose_batch_size(config: RunConfig, graph: KnowledgeGraph) -> int:
    """Returns the queries of a step that fit this machine's free memory, at most sixteen."""
    available, size = available_memory(), PREFERRED_BATCH_SIZE
    while size > 1 and available is not None:
        if predicted_memory(config, graph, size) < USABLE_SHARE * available:
            break
        size //= 2
    return size


def predicted_memory(config: RunConfig, graph: KnowledgeGraph, batch_size: int) -> float:
    """Returns the bytes that training will hold at its peak."""
    model, training = config.model, config.training
    num_entities = len(graph.entities)
    if training.region_size and not training.whole_graph_share:
        num_entities = min(num_entities, training.region_size)
    num_relations = num_with_inverses(len(graph.relations))
    states = 4.0 * num_entities * model.hidden_dim  # of one query
    in_slice = micro_batch_size(batch_size, num_entities, model.hidden_dim)
    num_slices = -(-batch_size // in_slice)
    in_flight = in_slice * min(config.threads or available_cores(), num_slices)
    # The first query stream of a batch, as states, gradients and what its own gradient needs.
    shared = min(batch_size, num_relations) * (3 + 2 * model.num_query_key_hops)
    shared += batch_size * TENSORS_PER_QUERY
    vectors = 4.0 * batch_size * num_relations * model.hidden_dim * _vector_sets(model)
    weights = 4.0 * (model.hidden_dim + 1) * num_relations * model.hidden_dim * _vector_sets(model)
    edges = 48.0 * graph.adjacency.num_edges
    return (
        PROCESS_BYTES
        + in_flight * states * (_saved_tensors(model) + WORKING_TENSORS)
        + shared * states
        + COPIES_OF_VECTORS * vectors
        + COPIES_OF_WEIGHTS * weights
        + COPIES_OF_EDGES * edges
    )


def _vector_sets(model: ModelConfig) -> int:
    """How many relation vectors a relation has."""
    return model.num_layers * (model.num_value_hops + 1)


def _saved_tensors(model: ModelConfig) -> float:
    """State tensors of a query that the backward pass needs: inputs, and two for every hop."""
    hops = model.num_query_key_hops + model.num_value_hops
    return model.num_layers * (2 * hops + 3.25)  # a quarter: dropout's bytes
