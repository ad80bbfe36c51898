"""Response types: what ``--json`` prints."""

from dataclasses import asdict
from typing import Any

from knowformer.answering.results import Answer, Answers, MissingFacts
from knowformer.data.catalog import CatalogEntry, locate


def answers_response(answers: Answers) -> dict[str, Any]:
    """Returns a question and its answers; ``probability_kind`` says what probabilities are."""
    return {
        "query": {
            "head": answers.head,
            "relation": answers.relation,
            "tail": answers.tail,
            "asks_for": answers.asks_for,
            "candidates": answers.num_candidates,
            "known": answers.num_known,
            "probability_kind": answers.probability_kind,
        },
        "answers": [_answer(answer, answers) for answer in answers.answers],
    }


def _answer(answer: Answer, answers: Answers) -> dict[str, Any]:
    content: dict[str, Any] = {
        "relation" if answers.asks_for == "relation" else "entity": answer.name,
        "rank": answer.rank,
        "score": answer.score,
        "probability": answer.probability,
        "known": answer.known,
    }
    if answer.label is not None:
        content["label"] = answer.label
    if answer.spread is not None:
        content["spread"] = asdict(answer.spread)
    return content


def missing_facts_response(found: MissingFacts) -> dict[str, Any]:
    """Returns new facts of a relation, most probable first."""
    facts = [asdict(fact) for fact in found.facts]
    return {
        "query": {
            "all_missing": found.relation,
            "questions": found.num_questions,
            "candidates": found.num_candidates,
            "probability_kind": found.probability_kind,
        },
        "facts": [{k: v for k, v in fact.items() if v is not None} for fact in facts],
    }


def dataset_response(entry: CatalogEntry) -> dict[str, Any]:
    """Returns a catalogue entry with its counts and where its files are, if they are here."""
    folder = locate(entry)
    return {
        "name": entry.name,
        "kind": entry.kind,
        "entities": entry.counts.entities,
        "relations": entry.counts.relations,
        "facts": dict(entry.counts.facts),
        "test_facts": (entry.test_graph_counts or entry.counts).facts.get("test"),
        "embedded": entry.embedded,
        "folder": str(folder) if folder else None,
        "licence": entry.licence,
    }
