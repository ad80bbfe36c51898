"""Findings of an audit: what was found, why it matters, what to do."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from knowformer.audit.links import MANY, are_links_misleading

if TYPE_CHECKING:
    from knowformer.audit.audit import Audit

Level = Literal["good", "note", "warning"]

FEW_FACTS = 1_000
FEW_OF_A_RELATION = 10
HUB_FRACTION = 0.1
MIN_HUB = 100
FEW_LEAKS = 0.01
NEARLY_ALL = 0.8
MIN_PRODUCT = 20
MOST_NAMED = 3


class Finding(BaseModel):
    """One finding; a good one says what the audit looked for in vain."""

    topic: str
    level: Level
    found: str
    why: str = ""
    advice: str = ""


def find(audit: "Audit") -> list[Finding]:
    """Returns all findings, warnings first."""
    checks: tuple[Callable[[Audit], Iterator[Finding]], ...] = (
        _leaks, _repeated_facts, _unseen, _linked_in_training, _linked, _overlaps, _products,
        _duplicates, _self_loops, _components, _hubs, _thin_entities, _rare_relations, _size,
    )  # fmt: skip
    findings = [finding for check in checks for finding in check(audit)]
    order: dict[Level, int] = {"warning": 0, "note": 1, "good": 2}
    return sorted(findings, key=lambda finding: order[finding.level])


def _leaks(audit: "Audit") -> Iterator[Finding]:
    test = audit.held_out["test"]
    if not test.leaked:
        yield Finding(
            topic="leaks",
            level="good",
            found="No test fact has a near-duplicate or near-inverse among the facts it is "
            "predicted from.",
        )
        return
    fraction = test.leaked / max(1, test.facts)
    yield Finding(
        topic="leaks",
        level="warning" if fraction >= FEW_LEAKS else "note",
        found=f"{test.leaked:,} of {test.facts:,} test facts ({_percent(fraction)}) can be read "
        "off another fact of the graph: the same two entities under a relation that nearly repeats "
        "theirs, forwards or backwards.",
        why="Copying that fact answers them without any reasoning, so the score says little about "
        "facts that cannot be copied. This made FB15k and WN18 easy.",
        advice="Import with `no_leaks=True`, which keeps such facts in the same split, or remove "
        "one relation of each pair listed under 'overlaps'.",
    )


def _repeated_facts(audit: "Audit") -> Iterator[Finding]:
    for name, held in audit.held_out.items():
        if held.repeated:
            yield Finding(
                topic="facts in two splits",
                level="warning",
                found=f"{held.repeated:,} of {held.facts:,} {name} facts are in the graph that "
                "they are predicted from.",
                why="They are looked up, not predicted.",
                advice=f"Remove them from {name}.txt, or import all facts again in one go.",
            )


def _unseen(audit: "Audit") -> Iterator[Finding]:
    splits = {name: held for name, held in audit.held_out.items() if held.with_unseen}
    if not splits:
        yield Finding(
            topic="unseen entities",
            level="good",
            found="Every entity of valid and test facts has facts to be predicted from.",
        )
        return
    fractions = {name: held.with_unseen / max(1, held.facts) for name, held in splits.items()}
    counts = " and ".join(
        f"{held.with_unseen:,} of {held.facts:,} {name} facts ({_percent(fractions[name])})"
        for name, held in splits.items()
    )
    yield Finding(
        topic="unseen entities",
        level="warning" if max(fractions.values()) >= MANY else "note",
        found=f"{counts} have an entity without any fact to be predicted from.",
        why="Nothing is known about such an entity, so the model can only guess; these facts lower "
        "every score.",
        advice="Read scores with that in mind, or split by a seed, which keeps a fact of every "
        "entity in training.",
    )


def _linked(audit: "Audit") -> Iterator[Finding]:
    test = audit.held_out["test"]
    fraction = test.linked / max(1, test.facts)
    if not test.linked:
        yield Finding(
            topic="entities linked already",
            level="good",
            found="No test fact is about two entities that the graph links already.",
        )
        return
    yield Finding(
        topic="entities linked already",
        level="note",
        found=f"{test.linked:,} of {test.facts:,} test facts ({_percent(fraction)}) are about two "
        "entities that some fact of the graph links already.",
        why="If entities are often linked by several facts, being linked at all is a strong hint. "
        "The facts you want may be those between entities that are not linked yet.",
        advice="If so, train with `training.hide=links`, which hides every link between the two "
        "entities of a training query."
        if fraction >= MANY
        else "Nothing: they are few.",
    )


def _linked_in_training(audit: "Audit") -> Iterator[Finding]:
    held = audit.held_out["valid"]  # not of the test: it is a reason for a setting
    in_training = audit.linked_in_training / max(1, audit.facts["train"])
    in_valid = held.linked / max(1, held.facts)
    if held.facts and are_links_misleading(in_training, in_valid):
        yield Finding(
            topic="links in training",
            level="warning",
            found=f"{_percent(in_training)} of the training facts are about two entities that "
            f"another training fact links too; of the valid facts {_percent(in_valid)} are.",
            why="A model would learn to look for a link that is not there when it is asked.",
            advice="`train` therefore hides every link between the two entities of a training "
            "query (`training.hide=links`), unless told otherwise.",
        )


def _overlaps(audit: "Audit") -> Iterator[Finding]:
    for kind, words in (("duplicate", "nearly repeats"), ("inverse", "is nearly the inverse of")):
        pairs = [overlap for overlap in audit.overlaps if overlap.kind == kind]
        if not pairs:
            continue
        top = pairs[0]
        many = f"In {len(pairs):,} pairs of relations one {words} the other; the largest: "
        yield Finding(
            topic=f"near-{kind}s",
            level="note",
            found=f"{many if len(pairs) > 1 else ''}{top.label!r} {words} {top.other_label!r}: "
            f"{_percent(top.share)} of its facts are there too"
            f"{', read backwards' if kind == 'inverse' else ''}.",
            why="Each fact is there twice: it costs time twice, and leaks where one of the two is "
            "held out.",
            advice="Keep one relation of each pair; every fact is used in both directions anyway.",
        )
    symmetric = [overlap.label for overlap in audit.overlaps if overlap.kind == "symmetric"]
    if symmetric:
        yield Finding(
            topic="symmetric relations",
            level="note",
            found=f"Facts of {_count(len(symmetric), 'relation')} nearly always hold in both "
            f"directions: {_some(symmetric)}.",
            why="Where one direction is held out, the other one gives it away.",
            advice="Keep one direction of each pair, or import with `no_leaks=True`.",
        )
    if not audit.overlaps:
        yield Finding(
            topic="overlapping relations",
            level="good",
            found="No relation nearly repeats another one, forwards or backwards.",
        )


def _products(audit: "Audit") -> Iterator[Finding]:
    rows = [
        row
        for row in audit.by_relation
        if row.facts >= max(MIN_PRODUCT, NEARLY_ALL * row.heads * row.tails)
    ]
    if rows:
        yield Finding(
            topic="trivial relations",
            level="note",
            found=f"In {_count(len(rows), 'relation')} nearly every head has nearly every tail: "
            f"{_some([row.label for row in rows])}.",
            why="Such facts are right whichever head is asked about, and raise every score.",
            advice="Leave the relation out if it says nothing.",
        )


def _duplicates(audit: "Audit") -> Iterator[Finding]:
    if audit.repeated_rows:
        yield Finding(
            topic="repeated rows",
            level="note",
            found=f"{audit.repeated_rows:,} rows repeat a fact; each fact was kept once.",
            why="A fact kept twice could be held out once and seen once.",
            advice="Nothing, unless you expected none.",
        )


def _self_loops(audit: "Audit") -> Iterator[Finding]:
    if audit.self_loops:
        yield Finding(
            topic="self-loops",
            level="note",
            found=f"{audit.self_loops:,} facts link an entity to itself.",
            why="They are often errors of a conversion, and seldom what one wants to predict.",
            advice="Look at some of them; remove them if they mean nothing.",
        )


def _components(audit: "Audit") -> Iterator[Finding]:
    components = audit.components
    if components.number <= 1:
        yield Finding(topic="components", level="good", found="The graph is connected.")
        return
    outside = audit.entities - components.largest
    yield Finding(
        topic="components",
        level="warning" if components.largest_share < 1 - MANY else "note",
        found=f"The graph has {components.number:,} connected components; the largest has "
        f"{_percent(components.largest_share)} of the entities, {outside:,} are outside.",
        why="No path leads from one component to another, so answers across them rest on "
        "similarity alone.",
        advice="Expect little of questions about entities outside the largest component; facts "
        "that link components (types, places) help.",
    )


def _hubs(audit: "Audit") -> Iterator[Finding]:
    total = audit.degrees.mean * audit.entities / 2
    hub = audit.degrees.hubs[0]
    if hub.degree >= max(MIN_HUB, HUB_FRACTION * total):
        yield Finding(
            topic="hubs",
            level="note",
            found=f"{hub.label!r} occurs in {hub.degree:,} facts, "
            f"{_percent(hub.degree / max(1.0, total))} of all.",
            why="Nearly everything is two steps from everything else through it, which says "
            "little; as an answer it is often right by frequency alone.",
            advice="If it is a type or a default value, consider leaving its relation out.",
        )


def _thin_entities(audit: "Audit") -> Iterator[Finding]:
    fraction = audit.degrees.num_once / max(1, audit.entities)
    if fraction >= MANY:
        yield Finding(
            topic="entities with one fact",
            level="note",
            found=f"{audit.degrees.num_once:,} entities ({_percent(fraction)}) occur in one fact.",
            why="That fact cannot be held out, so the test says nothing about them, and there is "
            "little to reason from.",
            advice="Add facts about them, or leave them out if they are only values (dates, "
            "addresses).",
        )


def _rare_relations(audit: "Audit") -> Iterator[Finding]:
    rare = [row for row in audit.by_relation if row.facts < FEW_OF_A_RELATION]
    if rare:
        yield Finding(
            topic="rare relations",
            level="note",
            found=f"{len(rare):,} of {audit.relations:,} relations have fewer than "
            f"{FEW_OF_A_RELATION} facts, such as {rare[0].label!r}.",
            why="They can hardly be learned, and hardly be tested.",
            advice="Merge them into broader relations, or read their answers with care.",
        )


def _size(audit: "Audit") -> Iterator[Finding]:
    total, test = sum(audit.facts.values()), audit.held_out["test"].facts
    if total < FEW_FACTS:
        yield Finding(
            topic="size",
            level="note",
            found=f"{total:,} facts in all, {test:,} of them for the test.",
            why="A score from few test facts may be off by several hundredths.",
            advice="Train with several seeds and compare.",
        )


def _percent(fraction: float) -> str:
    if fraction in (0.0, 1.0):
        return f"{fraction:.0%}"
    return f"{min(99.9, max(0.1, 100 * fraction)):.1f}%"  # not all is never 100%


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _some(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(map(repr, names[:MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")
