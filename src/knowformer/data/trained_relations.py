"""Facts keep to the relations of the training facts: no question can be asked about others."""

import logging
from collections.abc import Sequence
from pathlib import Path

from knowformer.errors import DataError
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple, read_triples

_logger = logging.getLogger(__name__)


def relations_of(
    path: Path, triples: Sequence[NamedTriple], relations: Vocabulary | None
) -> Vocabulary:
    """Returns the relations of the training facts, or the model's, which must cover them."""
    if relations is None:
        return Vocabulary((relation for _, relation, _ in triples), kind="relation")
    check_relations(path, triples, relations)
    return relations


def read_facts(path: Path, relations: Vocabulary) -> list[NamedTriple]:
    """Reads a file of facts that keep to these relations."""
    triples = read_triples(path)
    check_relations(path, triples, relations)
    return triples


def read_held_out(path: Path, relations: Vocabulary) -> list[NamedTriple]:
    """Reads facts to be predicted; those of relations that training lacks are left out, and said.

    No model could learn such a relation, and published data sets have a few.

    Raises:
        DataError: none would be left.
    """
    triples = read_triples(path)
    kept = [triple for triple in triples if triple[1] in relations]
    if not kept:
        check_relations(path, triples, relations)
    if len(kept) < len(triples):
        untrained = next(relation for _, relation, _ in triples if relation not in relations)
        _logger.warning(
            "Left out %d of the %d facts in %s: training facts lack their relation, such as %r.%s",
            len(triples) - len(kept), len(triples), path, untrained, relations.hint(untrained),
        )  # fmt: skip
    return kept


def check_relations(path: Path, triples: Sequence[NamedTriple], relations: Vocabulary) -> None:
    """Refuses a relation outside the training facts.

    Raises:
        DataError: names the relation, its triple and near spellings.
    """
    for number, (_, relation, _) in enumerate(triples, start=1):
        if relation not in relations:
            raise DataError(
                f"Expected relations that occur in the training facts, got {relation!r} in triple "
                f"{number} of {path}.{relations.hint(relation)}"
            )
