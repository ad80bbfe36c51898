"""Questions: answer, explain, compare two answers, ask as if facts were other than they are."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request

from knowformer.answering.query_files import COLUMNS as PARTS
from knowformer.answering.responses import AnswersResponse
from knowformer.errors import ConfigError, VocabularyError
from knowformer.live.snapshots import Snapshot
from knowformer.server.routes.shared import (
    TheService,
    TheSnapshot,
    on_snapshot,
    refusals,
    unless_left,
)
from knowformer.server.schemas.questions import (
    AnswerRequest,
    AnswersOnSnapshot,
    ComparedAnswer,
    CompareRequest,
    CompareResponse,
    ExplainRequest,
    ExplanationOnSnapshot,
    MoveResponse,
    WhatIfRequest,
    WhatIfResponse,
)
from knowformer.server.service import Service

router = APIRouter(prefix="/v1", tags=["questions"])
REFUSALS = refusals(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.GATEWAY_TIMEOUT,
)


@router.post("/answer", response_model=AnswersOnSnapshot, responses=REFUSALS)
async def answer(
    asked: AnswerRequest, request: Request, service: TheService, snapshot: TheSnapshot
) -> Any:
    """Answer a question: give two of head, relation and tail, and get the third."""
    parts, reasoner = asked.parts, snapshot.reasoner
    entities, relations = reasoner.graph.entities, reasoner.graph.relations
    is_known = all(
        name is None or name in (relations if field == "relation" else entities)
        for field, name in parts.items()
    )
    # A name that is not one of the graph's is looked for among many, which takes time.
    find = service.question
    question = find(snapshot, parts) if is_known else await run_sync(find, snapshot, parts)
    if question.relation is None and (asked.candidates or asked.of_type):
        raise ConfigError("Expected candidates for a head or a tail, got them for a relation.")
    how = service.how(
        k=asked.k,
        new_only=asked.new_only,
        samples=asked.samples,
        typical=asked.typical,
        of_type=asked.of_type,
        candidates=asked.candidates,
    )
    answers = await unless_left(request, service.queue.answer(snapshot, question, how))
    return on_snapshot(service.answer_content(snapshot, answers), snapshot.version)


@router.post("/explain", response_model=ExplanationOnSnapshot, responses=REFUSALS)
async def explain(
    asked: ExplainRequest, request: Request, service: TheService, snapshot: TheSnapshot
) -> Any:
    """Explain an answer: the facts and entities behind it, and what it loses without them."""

    def work() -> dict[str, Any]:
        explanation = snapshot.reasoner.explain(
            head=asked.head,
            relation=asked.relation,
            tail=asked.tail,
            asks_for=asked.asks_for,
            k=asked.paths,
            num_prototypes=asked.prototypes,
        )
        return explanation.model_dump(mode="json")

    names: dict[str, str | None] = {name: getattr(asked, name) for name in PARTS}
    content = await _long(request, service, snapshot, names, work)
    return on_snapshot(content, snapshot.version)


@router.post("/compare", response_model=CompareResponse, responses=REFUSALS)
async def compare(
    asked: CompareRequest, request: Request, service: TheService, snapshot: TheSnapshot
) -> Any:
    """Explain two answers to one question side by side: why this one, and not the other."""

    def work() -> dict[str, Any]:
        compared = snapshot.reasoner.compare(
            head=asked.head,
            relation=asked.relation,
            tail=asked.tail,
            first=asked.first,
            second=asked.second,
            k=asked.paths,
            num_prototypes=asked.prototypes,
        )
        sides = {"first": compared.first, "second": compared.second}
        return {
            name: ComparedAnswer.of(each).model_dump(mode="json") for name, each in sides.items()
        }

    names = {name: getattr(asked, name) for name in (*PARTS, "first", "second")}
    content = await _long(request, service, snapshot, names, work)
    return on_snapshot(content, snapshot.version)


@router.post("/what-if", response_model=WhatIfResponse, responses=REFUSALS)
async def what_if(
    asked: WhatIfRequest, request: Request, service: TheService, snapshot: TheSnapshot
) -> Any:
    """Answer a question without or with named facts; nothing is stored."""

    def work() -> dict[str, Any]:
        outcome = snapshot.reasoner.what_if(
            head=asked.head,
            relation=asked.relation,
            tail=asked.tail,
            without=[fact.triple for fact in asked.without],
            also=[fact.triple for fact in asked.with_],
            k=asked.k,
            new_only=asked.new_only,
        )
        moves = [MoveResponse.of(move, outcome.before.asks_for) for move in outcome.moves]
        return {
            "before": AnswersResponse.of(outcome.before).content(),
            "after": AnswersResponse.of(outcome.after).content(),
            "moves": [move.model_dump(mode="json", exclude_unset=True) for move in moves],
        }

    content = await _long(request, service, snapshot, asked.parts, work)
    return on_snapshot(content, snapshot.version)


async def _long(
    request: Request,
    service: Service,
    snapshot: Snapshot,
    names: dict[str, str | None],
    work: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Does work of seconds; a name that is unknown is refused with the field that has it."""
    try:
        return await unless_left(request, service.long_work.run(work))
    except VocabularyError as error:
        raise service.unknown(snapshot, names, error) from None
