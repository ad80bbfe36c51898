"""Facts and decisions, as they come in and as they are listed."""

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from knowformer.data.labels import Labels
from knowformer.live.decisions import StoredDecision, Verdict
from knowformer.live.facts import Action, StoredChange
from knowformer.server.schemas.fields import (
    Author,
    Fact,
    Flag,
    NamedFact,
    Note,
    OnSnapshot,
    labels_of,
)


class ChangeRequest(Fact):
    """A fact to add or to remove."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "head": "aspirin",
                    "relation": "treats",
                    "tail": "headache",
                    "why": "found in a trial",
                    "source": "doi:10.1000/182",
                }
            ]
        }
    )

    action: Action = "add"
    why: Note | None = None
    source: Note | None = None
    author: Author | None = None
    """Who makes the change; a token's own name takes its place."""


class ChangeItem(NamedFact):
    """A change that was made."""

    id: int
    action: Action
    author: str | None
    time: str
    why: str | None
    source: str | None
    undone: bool
    undone_by: int | None
    undoes: int | None

    @classmethod
    def of(cls, change: StoredChange, labels: Labels) -> "ChangeItem":
        """Returns a stored change with readable names."""
        content: dict[str, Any] = asdict(change) | labels_of(change.fact, labels)
        return cls(**content, undone=change.undone)


class ChangeResponse(NamedFact):
    """What became of a change."""

    id: int | None
    """None: there was nothing to change, and nothing was."""
    action: Action
    author: str | None = None
    time: str | None = None
    why: str | None = None
    source: str | None = None
    undone: bool = False
    undone_by: int | None = None
    undoes: int | None = None
    unchanged: bool = False
    """The fact was there already, or was not there to be removed, or was taken back before."""
    new_entities: list[str] = Field(default_factory=list[str])
    snapshot: int


class ChangesResponse(OnSnapshot):
    """Changes, newest first."""

    items: list[ChangeItem]
    next: int | None
    """``before`` of the page that follows; None: this is the last."""


class RejectedRowResponse(BaseModel):
    """A row that is no change."""

    row: int
    message: str


class UploadResponse(OnSnapshot):
    """What became of the rows of a file."""

    accepted: int
    unchanged: int
    num_rejected: int
    rejected: list[RejectedRowResponse]
    """The first thousand of them."""
    new_entities: int
    first_id: int | None
    last_id: int | None


class DecisionRequest(Fact):
    """A verdict on a proposed fact."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "head": "aspirin",
                    "relation": "treats",
                    "tail": "headache",
                    "verdict": "accept",
                    "note": "known to every chemist",
                    "add_fact": True,
                }
            ]
        }
    )

    verdict: Verdict
    note: Note | None = None
    author: Author | None = None
    rank: Annotated[int, Field(ge=1, lt=2**53, strict=True)] | None = None
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    add_fact: Flag = False


class DecisionItem(NamedFact):
    """A decision that was made."""

    id: int
    verdict: Verdict
    author: str | None
    time: str
    note: str | None
    rank: int | None
    probability: float | None
    decided_on: int
    """The snapshot that was looked at."""
    fact_id: int | None
    """The change that added the fact, if one did."""
    undone: bool
    undone_at: str | None

    @classmethod
    def of(cls, decision: StoredDecision, labels: Labels) -> "DecisionItem":
        """Returns a stored decision with readable names."""
        fact = (decision.head, decision.relation, decision.tail)
        content: dict[str, Any] = asdict(decision) | labels_of(fact, labels)
        undone_at, decided_on = content.pop("undone"), content.pop("snapshot")
        return cls(
            **content,
            decided_on=decided_on,
            undone=undone_at is not None,
            undone_at=undone_at,
        )


class DecisionOnSnapshot(DecisionItem):
    """A decision, and the snapshot after it."""

    snapshot: int


class DecisionsResponse(OnSnapshot):
    """Decisions, newest first."""

    items: list[DecisionItem]
    next: int | None
