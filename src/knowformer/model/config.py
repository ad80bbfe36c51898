"""ModelConfig: every choice of the model, validated; presets of the paper and of its code."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from knowformer.choices import PresetName
from knowformer.kernels.interface import Similarity
from knowformer.views.settings import ViewSettings

RELEASED_LAYERS, RELEASED_QUERY_KEY_HOPS = 3, 2
_RELEASED_DEPTH = {
    "num_layers": RELEASED_LAYERS,
    "num_query_key_hops": RELEASED_QUERY_KEY_HOPS,
    "num_value_hops": 3,
}


class ModelConfig(BaseModel):
    """Settings of the model. Defaults are the released code's; see ``PRESETS``."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    hidden_dim: int = Field(default=32, ge=1, le=4096)
    """D, width of every state."""
    num_layers: int | None = Field(default=None, ge=1, le=64)
    """L, transformer layers; none: 3, or 2 where a query sees a part of the graph."""
    num_query_key_hops: int | None = Field(default=None, ge=0, le=32)
    """L~, message-passing steps that make queries and keys in each layer; none: 2, or 1 where a
    query sees a part of the graph."""
    num_value_hops: int = Field(default=3, ge=0, le=32)
    """L^, message-passing steps that make values in each layer."""
    num_heads: int = Field(default=4, ge=1, le=4096)
    """H, attention heads; must divide hidden_dim."""
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of feed-forward activations dropped in training."""
    similarity: Similarity = "linear"
    """kappa(q, k): linear 1 + q.k, exponential exp(q.k) (quadratic in entities), or its estimate
    from random features."""
    num_random_features: int = Field(default=64, ge=1, le=65536)
    """Features per head when similarity is random_features."""
    attention: bool = True
    """False: the value stream's output takes the place of the attention's (ablation)."""
    centred_attention: bool = False
    """True: queries and keys are taken less their means over the entities that the query sees,
    before they are made unit vectors, so that they cannot all point the same way."""
    query_stream: bool = True
    """False: queries and keys are linear maps of the entity states (ablation)."""
    value_stream: bool = True
    """False: values are the stream's input without hops (ablation)."""
    update_layers: Literal[2, 3] = 2
    """Linear layers of a hop's update."""
    update_norm: bool = True
    """Whether a hop ends with LayerNorm and a residual connection."""
    noise_dim: int = Field(default=1, ge=0, le=4096)
    """Numbers of identity noise per entity; 0 means hidden_dim."""
    noise_scale: float = Field(default=4.0, ge=0.0, le=1e6)
    """Standard deviation of the identity noise."""

    relation_encoder: Literal["table", "graph"] = "table"
    """Where relation vectors come from: a table of weights for the relations trained on, or the
    graph, in which a relation is known by how it meets the others; such a model answers on graphs
    with other relations."""
    num_relation_hops: int = Field(default=4, ge=1, le=32)
    """Message-passing steps over the relation graph, when relation_encoder is graph."""

    view_size: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Entities that a query sees, at most: its part of the graph, in training and in use. 0: the
    whole graph; none: chosen when training starts."""
    view_alpha: float = Field(default=0.85, gt=0.0, lt=1.0)
    """Fraction of its PageRank that an entity passes on, when the view is chosen."""
    view_prior: float = Field(default=0.3, ge=0.0, le=16.0)
    """Weight of entities of the right kind in the choice of the view: the tails of the query's
    relation, by how often they are."""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "ModelConfig":
        if self.hidden_dim % self.num_heads:
            raise ValueError(
                f"model.num_heads must divide model.hidden_dim, got {self.num_heads} heads for "
                f"width {self.hidden_dim}"
            )
        return self

    def view_of(self, num_entities: int) -> ViewSettings | None:
        """Returns which part of a graph of this size a query sees; None: all of it."""
        if not self.view_size or self.view_size >= num_entities:
            return None
        return ViewSettings(
            size=self.view_size, alpha=self.view_alpha, prior_weight=self.view_prior
        )

    def num_seen(self, num_entities: int) -> int:
        """Returns how many entities of a graph of this size a query sees, at most."""
        return min(num_entities, self.view_size or num_entities)

    @property
    def layers(self) -> int:
        """``num_layers``, or the released code's if nothing has been chosen yet."""
        return RELEASED_LAYERS if self.num_layers is None else self.num_layers

    @property
    def query_key_hops(self) -> int:
        """``num_query_key_hops``, or the released code's if nothing has been chosen yet."""
        hops = self.num_query_key_hops
        return RELEASED_QUERY_KEY_HOPS if hops is None else hops

    @property
    def has_query_key_hops(self) -> bool:
        """Whether queries and keys come from a stream with hops."""
        return self.attention and self.query_stream and self.query_key_hops > 0

    @property
    def value_hops(self) -> int:
        """Hops of the value stream; the ablation has none."""
        return self.num_value_hops if self.value_stream else 0

    @property
    def noise_width(self) -> int:
        """Numbers of noise per entity."""
        return self.noise_dim or self.hidden_dim


PRESETS: dict[PresetName, dict[str, Any]] = {
    # What the authors published as code: two-layer update, LayerNorm, residual; scalar noise.
    "released": {
        "view_size": 0,
        "update_layers": 2,
        "update_norm": True,
        "noise_dim": 1,
        "noise_scale": 4.0,
        **_RELEASED_DEPTH,
    },
    # What the paper says: three-layer update, nothing after it; a noise vector; one head.
    "paper": {
        "update_layers": 3,
        "update_norm": False,
        "noise_dim": 0,
        "noise_scale": 1.0,
        "num_heads": 1,
        "view_size": 0,
        **_RELEASED_DEPTH,
    },
}
