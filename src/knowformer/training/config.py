"""TrainingConfig, and RunConfig, which composes all settings of a run."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from knowformer.model.config import ModelConfig
from knowformer.scoring.link import LinkFunction
from knowformer.training.sampling.batches import Targets
from knowformer.training.sampling.edge_removal import HiddenEdges

LossName = Literal["cross_entropy", "binary", "pairs"]
ScheduleName = Literal["cosine", "steps", "constant"]

MOST_EPOCHS = 20.0  # where nothing else is said


def _zero_is_none(value: object) -> object:
    """TOML has no null, so 0 turns off a setting that is recommended for the data set."""
    return None if value == 0 and not isinstance(value, bool) else value


class TrainingConfig(BaseModel):
    """Settings of training."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    targets: Targets = "some"
    """Targets of a query: all answers of (head, relation), a random subset, or one fact a query."""
    hide: HiddenEdges | None = None
    """Edges hidden from a training query: its target facts, or every link between its head and its
    targets. None: links where training facts have other links and validation facts hardly do."""
    region_size: Annotated[int | None, BeforeValidator(_zero_is_none)] = Field(
        default=None, ge=2, le=2**31 - 1
    )
    """Entities per partition. A large graph is partitioned anew every epoch, and a step trains on
    one partition. None or 0: always the whole graph."""
    whole_graph_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """With region_size, the fraction of the run's work, at its end, that trains on the whole graph,
    where entities have more neighbours and more competitors than in a partition."""
    carved_size: Annotated[int | None, BeforeValidator(_zero_is_none)] = Field(
        default=None, ge=2, le=2**31 - 1
    )
    """Entities of a carved graph, at most. A step then trains on a small graph that was drawn at
    random, without some of its facts, which it is asked for; only with model.relation_encoder =
    graph. None or 0: on the graph as it is."""
    edge_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Fraction of the other edges that is hidden as well, drawn anew for each batch."""
    relation_swaps: float = Field(default=0.0, ge=0.0, le=1.0)
    """Relation permutation augmentation: fraction of the relations whose ids are permuted among
    themselves, drawn anew for each batch. Rare relations then train on the facts of others."""
    loss: LossName = "cross_entropy"
    """cross_entropy over all entities; binary against sampled negatives of the same head; or pairs,
    which tells facts from unlinked pairs with both ends at random and selects weights by AUROC, for
    link prediction on a graph with one relation."""
    num_negatives: int = Field(default=256, ge=1, le=10**6)
    """Negatives per query of the binary loss."""
    adversarial_temperature: float = Field(default=1.0, ge=0.0, le=1e6)
    """Negatives are weighted by softmax(score / temperature); 0 weights them equally."""
    batch_size: int | None = Field(default=None, ge=1, le=65536)
    """Queries per step; none: 16, or fewer where memory is short."""
    max_epochs: float | None = Field(default=None, gt=0.0, le=1e6)
    """Epochs to train, may be fractional; max_minutes or patience may end the run earlier. None:
    20, or as many as make 400,000 queries."""
    max_minutes: float | None = Field(default=None, gt=0.0, le=1e7)
    """Wall-clock budget; the learning-rate schedule ends with it."""
    learning_rate: float = Field(default=5e-3, gt=0.0, le=100.0)
    """Adam's peak learning rate."""
    weight_decay: float = Field(default=1e-4, ge=0.0, le=1000.0)
    """L2 penalty in Adam; biases and norms are exempt."""
    schedule: ScheduleName = "cosine"
    """Learning rate: cosine to zero, steps (x0.1 at 1/2 and 3/4 of the run), or constant."""
    warmup_steps: int = Field(default=20, ge=0, le=10**9)
    """Steps of linear warm-up from zero."""
    gradient_clip: float = Field(default=1.0, gt=0.0, le=1e12)
    """Gradients are scaled down to this global norm."""
    averaging: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Decay per step of the weights' exponential moving average (EMA), which is then what is
    validated and saved; 0 turns it off."""
    patience: int | None = Field(default=None, ge=1, le=10**9)
    """Validations without a new record MRR before the run ends early; none: never."""
    validations_per_epoch: int = Field(default=1, ge=1, le=10**6)
    """Validations per epoch, evenly spaced over its work."""
    validation_region: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Inductive holdout: fraction of the entities that form, with their facts, a separate graph for
    validation, so that it measures performance on unseen entities. 0: validate on the training
    graph."""
    validation_relations: float = Field(default=0.0, ge=0.0, le=1.0)
    """Relation holdout: fraction of the frequent relations that keep two training facts each and
    are validated on, so that it measures performance on rare relations."""
    max_valid_facts: int = Field(default=1000, ge=1, le=10**9)
    """Validation facts used to choose the best checkpoint; a seeded sample if there are more."""
    checkpoint_minutes: float = Field(default=2.0, ge=0.0, le=1e7)
    """Minimum time between checkpoints; one is also written after every validation."""

    @property
    def hidden_edges(self) -> HiddenEdges:
        """``hide``, or its simplest value if nothing has been chosen yet."""
        return self.hide or "facts"

    @property
    def epochs(self) -> float:
        """``max_epochs``, or the most there are by default if nothing has been chosen yet."""
        return self.max_epochs or MOST_EPOCHS

    @property
    def link(self) -> LinkFunction:
        """Returns the link function of a model that was trained with this loss."""
        return "softmax" if self.loss == "cross_entropy" else "sigmoid"

    @model_validator(mode="after")
    def _exclude_each_other(self) -> "TrainingConfig":
        if self.validation_region and self.validation_relations:
            raise ValueError(
                "training.validation_region and training.validation_relations exclude each other"
            )
        if self.region_size and self.carved_size:
            raise ValueError("training.region_size and training.carved_size exclude each other")
        return self


class RunConfig(BaseModel):
    """A whole run: model, training, seed and threads."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    seed: int = Field(default=0, ge=0, le=2**63 - 1, strict=True)
    """Root seed of initial weights, order, negatives, dropout and noise."""
    threads: int = Field(default=0, ge=0, le=4096, strict=True)
    """CPU threads; 0 takes all cores. The result has the same bits for any number."""
    backend: str = "auto"
    """Kernels: cpu (fused, needs Numba), reference (plain torch), or auto."""

    @model_validator(mode="after")
    def _pairs_need_the_whole_graph(self) -> "RunConfig":
        # The ends of an unlinked pair lie anywhere; a view would leave out most of them.
        if self.training.loss == "pairs" and self.model.view_size:
            raise ValueError(
                "training.loss = pairs needs model.view_size = 0, got "
                f"{self.model.view_size}: most unlinked pairs lie outside of any view"
            )
        return self

    @model_validator(mode="after")
    def _fits_relation_encoder(self) -> "RunConfig":
        if self.training.relation_swaps and self.model.relation_encoder == "graph":
            raise ValueError(
                "training.relation_swaps needs model.relation_encoder = table: read from the "
                "graph, relations have no weights to swap"
            )
        if self.training.carved_size and self.model.relation_encoder != "graph":
            raise ValueError(
                "training.carved_size needs model.relation_encoder = graph: relations of a carved "
                "graph have numbers of their own"
            )
        return self
