"""Facts keep to the relations of the training facts: no question can be asked about others."""

from collections.abc import Sequence
from pathlib import Path

from knowformer.errors import DataError
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple, read_triples


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
