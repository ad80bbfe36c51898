"""KnowFormer: the modules that own the parameters; ``model.run`` is what runs them.

Choices that are not in the paper's text, or differ from the authors' released code:
- each layer is built afresh (the released code copies one layer, so its layers start equal);
- noise is an argument, shared by the queries of a batch and repeatable (see ``model.noise``);
- nothing exists that is not used, so every parameter receives a gradient.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.relation_graph import RelationGraph, relation_graph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.kernels.interface import Backend, QueryView, ScoreWeights, select_backend
from knowformer.model.config import ModelConfig
from knowformer.model.graph_encoder import GraphEncoder
from knowformer.model.layer import KnowFormerLayer
from knowformer.model.message_passing import Hop
from knowformer.model.relation_encoder import TableEncoder, encode_invariantly
from knowformer.model.run import Probe, run
from knowformer.model.streams import QueryKeyStream, ValueStream
from knowformer.model.weights import ModelWeights, select_queries
from knowformer.seeding import generator


class KnowFormer(nn.Module):
    """Scores (head, relation, ?) against every entity that the query sees."""

    def __init__(self, config: ModelConfig, num_relations: int, *, backend: str = "auto") -> None:
        """Builds a model with uninitialised weights; see ``initialize``.

        Args:
            config: the model's settings.
            num_relations: R, relations of the graph with inverses; a model that reads relations
                from the graph has no use for it.
            backend: the kernels' name; see ``kernels.interface.select_backend``.
        """
        super().__init__()
        self.config = config
        self.backend: Backend = select_backend(backend)
        self.encoder = (
            GraphEncoder(config, self.backend)
            if config.relation_encoder == "graph"
            else TableEncoder(config, num_relations)
        )
        self.layers = nn.ModuleList([KnowFormerLayer(config) for _ in range(config.layers)])
        self.score_hidden = nn.Linear(config.hidden_dim, config.hidden_dim)
        self.score_last = nn.Linear(config.hidden_dim, 1)
        self.register_load_state_dict_pre_hook(_rename_old_weights)

    @classmethod
    def initialized(
        cls, config: ModelConfig, relations: Vocabulary, *, seed: int = 0, backend: str = "auto"
    ) -> "KnowFormer":
        """Returns a model ready to be trained on facts of these relations."""
        model = cls(config, num_with_inverses(len(relations)), backend=backend)
        initialize(model, generator=generator(seed, "init"))
        return model

    def forward(
        self,
        view: QueryView,
        relations: Int[Tensor, " B"],
        *,
        identity_noise: Float[Tensor, "L V noise"],
        relation_graph: RelationGraph | None = None,
        dropout: np.random.Generator | None = None,
        probe: Probe | None = None,
    ) -> Float[Tensor, " N"]:
        """Returns the score of every row of the view: logits, higher is better.

        Args:
            view: what the queries see.
            relations: the queries' relations.
            identity_noise: of the view's entities.
            relation_graph: of the graph that the view is a part of; see ``relation_graph``.
            dropout: draws what is dropped; without it nothing is.
            probe: looks into the run.
        """
        distinct: Tensor
        distinct, of_query = torch.unique(relations, return_inverse=True)
        encoded = encode_invariantly(self.encoder, distinct, relation_graph)
        vectors = select_queries(encoded, of_query)
        weights = self.pack(identity_noise)
        return run(weights, view, vectors, self.backend, dropout=dropout, probe=probe)

    def relation_graph(self, adjacency: Adjacency) -> RelationGraph | None:
        """Returns what the encoder reads of a graph; None if that is nothing."""
        return relation_graph(adjacency) if self.config.relation_encoder == "graph" else None

    def pack(self, identity_noise: Float[Tensor, "L V noise"]) -> ModelWeights:
        """Returns the weights in the form that kernels take, for entities with this noise."""
        hidden, last = self.score_hidden, self.score_last
        return ModelWeights(
            tuple(
                layer.pack(noise)
                for layer, noise in zip(self.typed_layers(), identity_noise, strict=True)
            ),
            ScoreWeights.pack((hidden.weight, hidden.bias), (last.weight, last.bias)),
            num_heads=self.config.num_heads if self.config.attention else 0,
            dropout_threshold=round(self.config.dropout * 256),
            centres_query_keys=self.config.centred_attention,
        )

    def noise_inputs(
        self, identity_noise: Float[Tensor, "L V noise"]
    ) -> list[Float[Tensor, "V D"] | None]:
        """Returns what each layer's query stream makes of noise: for ``with_noise_inputs``."""
        streams = [layer.query_key_stream for layer in self.typed_layers()]
        return [
            None if stream is None else stream.noise_input(noise.to(stream.first.weight.dtype))
            for stream, noise in zip(streams, identity_noise, strict=True)
        ]

    @property
    def is_batch_invariant(self) -> bool:
        """Whether a query's scores have the same bits in any batch."""
        config = self.config
        if config.centred_attention:  # a mean may be rounded by how many queries are summed at once
            return False
        return config.attention and self.backend.is_batch_invariant(
            width=config.hidden_dim, num_heads=config.num_heads, similarity=config.similarity
        )

    def typed_layers(self) -> list[KnowFormerLayer]:
        """Returns the layers."""
        layers: list[KnowFormerLayer] = list(self.layers)  # pyright: ignore[reportAssignmentType]
        return layers


def initialize(model: KnowFormer, *, generator: torch.Generator) -> None:
    """Draws every weight from one generator, in an order that no setting changes."""
    for module in _in_order(model):
        if isinstance(module, nn.Linear):
            bound = module.in_features**-0.5  # torch's own rule for nn.Linear
            nn.init.uniform_(module.weight, -bound, bound, generator=generator)
            if "bias" in dict(module.named_parameters()):
                nn.init.uniform_(module.bias, -bound, bound, generator=generator)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, generator=generator)
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, Hop):
            nn.init.normal_(module.self_weight, generator=generator)


def ordered_parameters(model: KnowFormer) -> list[nn.Parameter]:
    """Returns every parameter in the order of ``initialize``.

    A sum over all of them, as in a gradient's norm, rounds by their order: it must not follow how
    modules happen to be arranged.
    """
    return [
        parameter for module in _in_order(model) for parameter in module.parameters(recurse=False)
    ]


def _in_order(model: KnowFormer) -> Iterator[nn.Module]:
    """Yields the modules: each layer's streams with their relation projections after the input."""
    yield from model.encoder.first_modules()
    for layer, projection in zip(model.typed_layers(), model.encoder.typed_layers(), strict=True):
        if layer.query_key_stream is not None:
            yield from _of_stream(layer.query_key_stream, [projection.query_key])
        yield from _of_stream(layer.value_stream, projection.value)
        after = (layer.to_query_key, layer.attention_norm, layer.expand, layer.contract)
        yield from (module for module in (*after, layer.output_norm) if module is not None)
    yield from (model.score_hidden, model.score_last)


def _of_stream(
    stream: QueryKeyStream | ValueStream, projections: Iterable[nn.Module | None]
) -> Iterator[nn.Module]:
    yield from (stream.first, stream.second)
    for projection in projections:
        yield from () if projection is None else projection.modules()
    yield from stream.hops.modules()


# Where version 0.1 kept the weights of the relation encoder.
_OLD_NAMES = (
    (r"^query_relations\.", r"encoder.query_relations."),
    (r"^(layers\.\d+)\.query_key_stream\.relation_vectors\.project", r"encoder.\1.query_key"),
    (r"^(layers\.\d+)\.value_stream\.relation_vectors\.(\d+)\.project", r"encoder.\1.value.\2"),
)


def current_name(name: str) -> str:
    """Returns what a parameter of version 0.1 is called now; names of today stay."""
    for pattern, replacement in _OLD_NAMES:
        name = re.sub(pattern, replacement, name)
    return name


def _rename_old_weights(module: nn.Module, state: dict[str, Tensor], *_: Any) -> None:
    """Lets runs of version 0.1 load."""
    del module
    for name in list(state):
        state[current_name(name)] = state.pop(name)
