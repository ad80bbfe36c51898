"""GraphEncoder: relation vectors made from the relation graph, so that no relation needs a name.

The query's relation is marked, and a few hops over the relation graph give every relation a state
that says what it is to the query's. From the states MLPs make the vectors of each layer and hop.
Weights belong to kinds of meeting, never to relations: one model answers on any graph. The idea is
ULTRA's (Galkin et al., ICLR 2024); fractions of shared entities and shared pairs are ours.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.graph.relation_graph import NUM_MEETING_KINDS, RelationGraph
from knowformer.kernels.interface import Backend, QueryView
from knowformer.model.config import ModelConfig
from knowformer.model.relation_encoder import embedding
from knowformer.model.streams import ValueStream
from knowformer.model.weights import LayerVectors, RelationVectors, tensors_in, with_tensors


class RelationReadout(nn.Module):
    """MLPs from the state of a relation to its vectors in one layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.query_key = _mlp(config.hidden_dim) if config.has_query_key_hops else None
        self.value = nn.ModuleList([_mlp(config.hidden_dim) for _ in range(config.value_hops)])

    def forward(self, states: Float[Tensor, "n D"]) -> LayerVectors:
        """Returns the vectors of each state's relation, for the query stream and each value hop."""
        query_key = None if self.query_key is None else self.query_key(states)
        return LayerVectors(query_key, tuple(make(states) for make in self.value))


def _mlp(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


class GraphEncoder(nn.Module):
    """Reads what a relation is from how it meets the others."""

    tile = 1  # then its products have as many rows as the component has relations, in any batch

    def __init__(self, config: ModelConfig, backend: Backend) -> None:
        super().__init__()
        hops = {"num_value_hops": config.num_relation_hops, "value_stream": True}
        self.stream = ValueStream(config.model_copy(update=hops))
        self.meetings = nn.ModuleList(
            [
                embedding(NUM_MEETING_KINDS, config.hidden_dim)
                for _ in range(config.num_relation_hops)
            ]
        )
        self.layers = nn.ModuleList([RelationReadout(config) for _ in range(config.layers)])
        self._backend = backend

    def forward(
        self,
        relations: Int[Tensor, " Q"],
        relation_graph: RelationGraph | None = None,
        *,
        permutation: Int[Tensor, " R"] | None = None,
    ) -> RelationVectors:
        """See ``RelationEncoder``; no relation has weights that another could take."""
        assert relation_graph is not None
        assert permutation is None
        start, stop = relation_graph.start[relations], relation_graph.stop[relations]
        heads = relation_graph.place[relations] - start
        offsets = torch.cat([start.new_zeros(1), (stop - start).cumsum(0)])
        tables: list[Tensor] = [meeting.weight for meeting in self._typed_meetings()]
        states = self._backend.stream(
            None,
            self.stream.pack(),
            [table.expand(len(relations), -1, -1).contiguous() for table in tables],
            QueryView(relation_graph.edges, offsets, start, heads),
        )
        made: RelationVectors = tuple(layer(states) for layer in self.layers)
        # Relations of other components never meet the query's: no message of theirs reaches it.
        query = torch.repeat_interleave(torch.arange(len(relations)), stop - start)
        node = torch.arange(len(query)) - offsets[query] + start[query]
        size = len(relations), len(relation_graph.relations)
        rows = query * size[1] + relation_graph.relations[node]
        spread = [
            vectors.new_zeros(size[0] * size[1], vectors.shape[1])
            .index_copy(0, rows, vectors)
            .unflatten(0, size)
            for vectors in tensors_in(made)
        ]
        return with_tensors(made, spread)

    def first_modules(self) -> Iterator[nn.Module]:
        """See ``RelationEncoder``."""
        yield from self.stream.modules()
        yield from self._typed_meetings()

    def typed_layers(self) -> list[RelationReadout]:
        """Returns what makes the vectors of each layer."""
        layers: list[RelationReadout] = list(self.layers)  # pyright: ignore[reportAssignmentType]
        return layers

    def _typed_meetings(self) -> list[nn.Embedding]:
        meetings: list[nn.Embedding] = list(self.meetings)  # pyright: ignore[reportAssignmentType]
        return meetings
