"""Response types: what ``--json`` prints."""

from typing import Any

from knowformer.graph.catalog import CatalogEntry, locate
from knowformer.reasoner import Answers


def answers_response(answers: Answers) -> dict[str, Any]:
    """Returns a question and its answers; probabilities are the model's own, not calibrated."""
    named = "relation" if answers.asks_for == "relation" else "entity"
    return {
        "query": {
            "head": answers.head,
            "relation": answers.relation,
            "tail": answers.tail,
            "asks_for": answers.asks_for,
            "candidates": answers.num_candidates,
            "known": answers.num_known,
        },
        "answers": [
            {
                named: answer.name,
                "rank": answer.rank,
                "score": answer.score,
                "probability": answer.probability,
                "known": answer.known,
            }
            for answer in answers.answers
        ],
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
