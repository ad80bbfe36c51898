"""What requests and responses are made of: names and texts with limits, facts."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from knowformer.data.labels import Labels
from knowformer.live.facts import MAX_AUTHOR
from knowformer.server.settings import (
    MAX_ANSWERS,
    MAX_EVIDENCE,
    MAX_NAME,
    MAX_SAMPLES,
    MAX_TEXT,
)


def _is_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        raise ValueError("text that UTF-8 can encode") from None
    return text


Text = Annotated[str, AfterValidator(_is_text)]
Name = Annotated[Text, Field(min_length=1, max_length=MAX_NAME, examples=["aspirin"])]
Note = Annotated[Text, Field(max_length=MAX_TEXT)]
Author = Annotated[Text, Field(max_length=MAX_AUTHOR)]
NumAnswers = Annotated[int, Field(ge=1, le=MAX_ANSWERS, strict=True)]
NumEvidence = Annotated[int, Field(ge=1, le=MAX_EVIDENCE, strict=True)]
NumSamples = Annotated[int, Field(ge=1, le=MAX_SAMPLES, strict=True)]
Flag = Annotated[bool, Field(strict=True)]


class Request(BaseModel):
    """A request's body; a key that is not known is refused, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Fact(Request):
    """A fact, by names or readable names."""

    head: Name
    relation: Name
    tail: Name

    @property
    def triple(self) -> tuple[str, str, str]:
        """The three names."""
        return self.head, self.relation, self.tail


class NamedFact(BaseModel):
    """A fact with the readable names that it has."""

    head: str
    relation: str
    tail: str
    head_label: str | None = None
    relation_label: str | None = None
    tail_label: str | None = None


class OnSnapshot(BaseModel):
    """A response about the graph: it says which snapshot of it."""

    snapshot: int
    """The version of the graph: the number of its last change, 0 for the graph as it was loaded."""


def labels_of(fact: tuple[str, str, str], labels: Labels) -> dict[str, str | None]:
    """Returns the readable names of a fact, None where there is none."""
    head, relation, tail = fact
    return {
        "head_label": labels.entities.get(head),
        "relation_label": labels.relations.get(relation),
        "tail_label": labels.entities.get(tail),
    }
