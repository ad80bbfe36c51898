"""Names: search of entities and relations, kept up with the graph as it grows."""

from threading import Lock

from knowformer.data.mapped_dataset import open_search
from knowformer.data.name_search import Match, NameSearch
from knowformer.live.snapshots import Snapshot


class Names:
    """Finds names while they are typed; several threads may search."""

    def __init__(self, snapshot: Snapshot) -> None:
        labels, dataset = snapshot.reasoner.labels, snapshot.reasoner.dataset
        self._lock = Lock()
        self._size = len(snapshot.graph.entities)
        stored = None
        if snapshot.base.entities.stored is dataset.train.graph.entities.stored:
            stored = open_search(dataset, labels)
        names = snapshot.graph.entities.names
        self._entities = stored or NameSearch(names, labels.entities)
        self._relations = NameSearch(snapshot.graph.relations.names, labels.relations)

    def entities(self, snapshot: Snapshot, text: str, limit: int) -> list[Match]:
        """Returns entities of a snapshot, the best match first."""
        search = self._up_to(snapshot)
        found = search.search(text, limit)
        return [match for match in found if match.name in snapshot.graph.entities]

    def relations(self, text: str, limit: int) -> list[Match]:
        """Returns relations, the best match first."""
        return self._relations.search(text, limit)

    def _up_to(self, snapshot: Snapshot) -> NameSearch:
        """Returns an index that has the names of a snapshot; it may have later ones too."""
        entities = snapshot.graph.entities
        with self._lock:
            if len(entities) > self._size:
                new = (entities.name(number) for number in range(self._size, len(entities)))
                self._entities = self._entities.with_names(new)
                self._size = len(entities)
            return self._entities
