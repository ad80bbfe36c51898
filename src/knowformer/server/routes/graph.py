"""The graph, its names and facts, and the model card."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query

from knowformer.data.name_search import Match
from knowformer.errors import VocabularyError
from knowformer.server.graph_facts import (
    describe_entity,
    facts_by_relation,
    most_facts,
    named_fact,
    num_facts,
)
from knowformer.server.model_card import model_card
from knowformer.server.routes.shared import (
    AnyCaller,
    Limit,
    TheService,
    TheSnapshot,
    on_snapshot,
    refusals,
)
from knowformer.server.schemas.fields import Name, Text
from knowformer.server.schemas.graph import (
    AuditOnSnapshot,
    EntitiesResponse,
    EntityResponse,
    FoundEntity,
    FoundRelation,
    GraphResponse,
    ModelResponse,
    RelationsResponse,
)
from knowformer.server.settings import MAX_NAME

router = APIRouter(prefix="/v1", tags=["graph"])
Typed = Annotated[Text, Query(max_length=MAX_NAME, description="What was typed so far.")]


@router.get("/graph", response_model=GraphResponse, responses=refusals())
def graph(service: TheService, snapshot: TheSnapshot, caller: AnyCaller) -> Any:
    """What is asked: a graph with its counts, and what the caller may do."""
    own = snapshot.graph
    writes = caller.role == "write" and not service.settings.read_only
    example = service.example
    return on_snapshot(
        GraphResponse(
            name=service.graph_name,
            run=snapshot.reasoner.folder.name,
            entities=len(own.entities),
            relations=len(own.relations),
            facts=own.adjacency.num_edges // 2,
            added=snapshot.added,
            removed=snapshot.removed,
            types=[],
            roles=["read", "write"] if writes else ["read"],
            read_only=service.settings.read_only,
            example=example and named_fact(snapshot, example.head, example.relation, example.tail),
            snapshot=snapshot.version,
        ),
        snapshot.version,
    )


@router.get("/model", response_model=ModelResponse, responses=refusals())
def model(snapshot: TheSnapshot) -> Any:
    """The model card: where the model comes from, how it was trained, how good it is."""
    return on_snapshot(model_card(snapshot), snapshot.version)


@router.get("/entities", response_model=EntitiesResponse, responses=refusals())
def entities(service: TheService, snapshot: TheSnapshot, q: Typed = "", limit: Limit = 10) -> Any:
    """Entities whose name or readable name is what was typed, begins with it, or is like it.

    Those with most facts where nothing was typed.
    """
    own, labels = snapshot.graph, snapshot.reasoner.labels.entities
    if q.strip():
        found = service.names.entities(snapshot, q, limit)
    else:
        names = map(own.entities.name, most_facts(own, limit))
        found = [Match(name, labels.get(name), "prefix") for name in names]
    items = [
        FoundEntity(
            name=match.name,
            label=match.label,
            facts=num_facts(own, own.entities.id(match.name)),
            match=match.how,
        )
        for match in found
    ]
    return on_snapshot(EntitiesResponse(items=items, snapshot=snapshot.version), snapshot.version)


@router.get("/relations", response_model=RelationsResponse, responses=refusals())
def relations(service: TheService, snapshot: TheSnapshot, q: Typed = "", limit: Limit = 100) -> Any:
    """Relations whose name is what was typed, begins with it, or is like it; all at first."""
    counts = facts_by_relation(snapshot.graph)
    items = [
        FoundRelation(
            name=match.name,
            label=match.label,
            facts=int(counts[snapshot.graph.relations.id(match.name)]),
            match=match.how,
        )
        for match in service.names.relations(q, limit)
    ]
    return on_snapshot(RelationsResponse(items=items, snapshot=snapshot.version), snapshot.version)


@router.get("/entity", response_model=EntityResponse, responses=refusals(HTTPStatus.NOT_FOUND))
def entity(
    service: TheService,
    snapshot: TheSnapshot,
    name: Annotated[Name, Query()],
    relation: Annotated[Name | None, Query()] = None,
    limit: Limit = 50,
    offset: Annotated[int, Query(ge=0, le=1 << 40)] = 0,
) -> Any:
    """An entity and its facts, a page of them; of one relation if it is named."""
    labels, own = snapshot.reasoner.labels, snapshot.graph
    try:
        number = labels.find_entity(name, own.entities)
        only = None if relation is None else labels.find_relation(relation, own.relations)
    except VocabularyError as error:
        raise service.unknown(snapshot, {"name": name, "relation": relation}, error) from None
    found = describe_entity(snapshot, number, relation=only, limit=limit, offset=offset)
    return on_snapshot(found, snapshot.version)


@router.get("/audit", response_model=AuditOnSnapshot, responses=refusals())
async def audit(service: TheService, snapshot: TheSnapshot) -> Any:
    """What the data set holds, and what could mislead; as ``audit --json`` prints it."""
    report = await service.long_work.run(lambda: service.audit)
    return on_snapshot(report, snapshot.version)
