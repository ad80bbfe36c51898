"""The graph, its names and facts, the model card; the audit is what ``--json`` prints."""

from typing import Any, Literal

from pydantic import BaseModel

from knowformer.audit.audit import Audit
from knowformer.server.schemas.fields import NamedFact, OnSnapshot
from knowformer.server.tokens import Role


class EntityType(BaseModel):
    """A kind of entity."""

    name: str
    entities: int


class GraphResponse(OnSnapshot):
    """What is asked: a graph, and what the caller may do with it."""

    name: str
    run: str
    entities: int
    relations: int
    facts: int
    added: int
    removed: int
    types: list[EntityType]
    roles: list[Role]
    read_only: bool
    example: NamedFact | None
    """A fact to begin with."""


class ModelResponse(OnSnapshot):
    """The model card: where the model comes from, and how good it is."""

    run: str
    dataset: str
    relations: list[str]
    settings: dict[str, Any]
    training: dict[str, Any]
    metrics: dict[str, Any]
    baselines: dict[str, Any]
    calibration: dict[str, Any] | None


class FoundEntity(BaseModel):
    """An entity that a search has found."""

    name: str
    label: str | None
    facts: int
    type: str | None = None
    match: str


class EntitiesResponse(OnSnapshot):
    """Entities, the best match first."""

    items: list[FoundEntity]


class FoundRelation(BaseModel):
    """A relation that a search has found."""

    name: str
    label: str | None
    facts: int
    match: str


class RelationsResponse(OnSnapshot):
    """Relations, the best match first."""

    items: list[FoundRelation]


class FactOfEntity(NamedFact):
    """A fact of an entity."""

    source: Literal["graph", "live"]
    """Of the graph as it was loaded, or added since."""


class RelationOfEntity(BaseModel):
    """How many facts of a relation an entity takes part in."""

    relation: str
    label: str | None
    as_head: int
    as_tail: int


class EntityResponse(OnSnapshot):
    """An entity and its facts, a page of them."""

    name: str
    label: str | None
    type: str | None
    total: int
    items: list[FactOfEntity]
    relations: list[RelationOfEntity]


class AuditOnSnapshot(Audit):
    """What a data set holds; what ``audit --json`` prints, and the snapshot."""

    snapshot: int
