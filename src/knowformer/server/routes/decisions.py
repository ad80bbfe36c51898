"""Decisions: what people think of a proposed fact."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from knowformer.errors import VocabularyError
from knowformer.live.decisions import Decision, StoredDecision
from knowformer.live.export import ExportFormat, export_decisions
from knowformer.server.routes.facts import WRITING
from knowformer.server.routes.shared import (
    EXPORT,
    Before,
    Key,
    Limit,
    Number,
    TheService,
    Writer,
    author_of,
    export_response,
    on_snapshot,
    refusals,
)
from knowformer.server.schemas.changes import (
    DecisionItem,
    DecisionOnSnapshot,
    DecisionRequest,
    DecisionsResponse,
)
from knowformer.server.service import Service

router = APIRouter(prefix="/v1/decisions", tags=["decisions"])


@router.get("", response_model=DecisionsResponse, responses=refusals())
def decisions(service: TheService, limit: Limit = 50, before: Before = None) -> Any:
    """Decisions, newest first."""
    snapshot = service.snapshot()
    page = service.live.decisions(limit=limit, before=before)
    labels = snapshot.reasoner.labels
    items = [DecisionItem.of(decision, labels) for decision in page.items]
    content = DecisionsResponse(items=items, next=page.next, snapshot=snapshot.version)
    return on_snapshot(content, snapshot.version)


@router.post("", status_code=201, response_model=DecisionOnSnapshot, responses=WRITING)
def decide(asked: DecisionRequest, service: TheService, caller: Writer, key: Key = None) -> Any:
    """Accept, reject or leave open a proposed fact; one that is accepted is added if asked."""
    decision = Decision(
        *asked.triple,
        verdict=asked.verdict,
        note=asked.note,
        rank=asked.rank,
        probability=asked.probability,
    )
    try:
        stored, version = service.live.decide(
            decision,
            author=author_of(caller, asked.author),
            add_fact=asked.add_fact,
            key=key,
        )
    except VocabularyError as error:
        raise service.unknown_relation(asked.relation, error) from None
    return _response(service, stored, version, HTTPStatus.CREATED)


@router.get("/export", response_class=StreamingResponse, responses=EXPORT)
def export(service: TheService, format: ExportFormat = "tsv") -> Any:  # noqa: A002
    """All decisions, as a file."""
    return export_response("decisions", export_decisions(service.live, format), format)


@router.delete("/{number}", response_model=DecisionOnSnapshot, responses=WRITING)
def undo(number: Number, service: TheService, caller: Writer) -> Any:
    """Take a decision back, and the fact that it added."""
    stored, version = service.live.undo_decision(number, author=caller.name)
    return _response(service, stored, version, HTTPStatus.OK)


def _response(service: Service, stored: StoredDecision, version: int, status: HTTPStatus) -> Any:
    item = DecisionItem.of(stored, service.live.snapshot().reasoner.labels)
    return on_snapshot(item, version, status)
