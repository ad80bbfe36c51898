"""Explainer: why a model gave an answer. Finds evidence, checks it by removal, names it."""

import time

import numpy as np
import torch

from knowformer.choices import NUM_PATHS, NUM_PROTOTYPES, AsksFor
from knowformer.data.labels import Labels
from knowformer.explanation.check.faithfulness import Removal, check_evidence, score_margin
from knowformer.explanation.explanation import (
    AttendedEntity,
    EvidencePath,
    Explanation,
    HeadAttention,
    ScoreDrop,
    ScoreMargin,
    Step,
)
from knowformer.explanation.find.attention_rows import largest
from knowformer.explanation.find.evidence import AnswerEvidence, EvidenceFinder
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.paths import EdgePath
from knowformer.explanation.find.prediction import Prediction
from knowformer.graph.inverse import asked_relation, inverse_of
from knowformer.graph.traversal import UNREACHED
from knowformer.seeding import derive_seed
from knowformer.system.workers import torch_on_one_core

NUM_DRAWS = 5  # of random evidence


class Explainer:
    """Explains answers on one graph, in names."""

    def __init__(self, finder: EvidenceFinder, *, labels: Labels, seed: int) -> None:
        self._finder = finder
        self._graph = finder.graph
        self._labels = labels
        self._seed = seed

    @torch_on_one_core()
    def explain(
        self,
        head: str,
        relation: str,
        tail: str,
        *,
        asks_for: AsksFor = "tail",
        num_paths: int = NUM_PATHS,
        num_prototypes: int = NUM_PROTOTYPES,
        num_draws: int = NUM_DRAWS,
    ) -> Explanation:
        """Explains a tail as the answer to (head, relation, ?), or a head to (?, relation, tail).

        The fact itself is hidden if the graph holds it: it would be the only reason.

        Args:
            head: the head's name, or its readable name.
            relation: the relation's.
            tail: the tail's.
            asks_for: which of the two is the answer to explain.
            num_paths: paths to name.
            num_prototypes: entities to name.
            num_draws: draws of random evidence to compare with.

        Raises:
            VocabularyError: a name is unknown.
        """
        started = time.perf_counter()
        first, number, last = self._ids(head, relation, tail)
        prediction = self._prediction(first, number, last, asks_for)
        evidence = self._finder.find(prediction, num_paths=num_paths, num_prototypes=num_prototypes)
        before = score_margin(evidence.trace.scores, prediction, self._finder.probability)
        removal = Removal(self._finder, evidence)
        random = np.random.default_rng(
            derive_seed(self._seed, "explanation", first, number, last, asks_for)
        )
        fact = torch.tensor([[first, number, last]])
        explanation = Explanation(
            head=self._graph.entities.name(first),
            relation=self._graph.relations.names[number],
            tail=self._graph.entities.name(last),
            asks_for=asks_for,
            standing=before,
            num_rivals=int(prediction.competitors.sum()),
            num_candidates=len(self._graph.entities),
            probability_kind=self._finder.probability.kind if self._finder.probability else "model",
            fact_hidden=bool(self._graph.adjacency.has_fact(fact)),
            paths=sorted(
                [self._path(path, evidence.graph, removal, before) for path in evidence.paths],
                key=lambda path: -path.loss.truth_log_odds,
            ),
            no_paths=self._why_no_paths(evidence),
            prototypes=self._attended(evidence, evidence.prototypes),
            attended=self._attended(evidence, evidence.attended),
            heads=self._heads(evidence, num_prototypes),
            no_prototypes=_why_no_prototypes(evidence),
            without_attention=(
                None
                if evidence.trace.attention is None
                else ScoreDrop.between(before, removal.attending_alone([]))
            ),
            faithfulness=check_evidence(
                evidence, removal, before=before, num_draws=num_draws, random=random
            ),
            seconds=round(time.perf_counter() - started, 3),
        )
        return explanation.with_labels(self._labels)

    def _ids(self, head: str, relation: str, tail: str) -> tuple[int, int, int]:
        labels, graph = self._labels, self._graph
        return (
            labels.find_entity(head, graph.entities),
            labels.find_relation(relation, graph.relations),
            labels.find_entity(tail, graph.entities),
        )

    def _prediction(self, head: int, relation: int, tail: int, asks_for: AsksFor) -> Prediction:
        if asks_for == "tail":
            return self._finder.prediction(head, relation, tail)
        # (?, r, t) is the query (t, inverse of r, ?).
        backwards = inverse_of(relation, len(self._graph.relations))
        return self._finder.prediction(tail, backwards, head)

    def _path(
        self, path: EdgePath, graph: EvidenceGraph, removal: Removal, before: ScoreMargin
    ) -> EvidencePath:
        facts: list[int] = graph.fact_of_edge[list(path.edges)].tolist()
        return EvidencePath(
            steps=[self._step(graph, edge) for edge in path.edges],
            weight=path.weight,
            loss=ScoreDrop.between(before, removal.without_facts(facts)),
        )

    def _step(self, graph: EvidenceGraph, edge: int) -> Step:
        asked = asked_relation(int(graph.relation[edge]), self._graph.relations)
        return Step(
            start=self._name(graph, int(graph.sender[edge])),
            relation=asked.name,
            end=self._name(graph, int(graph.receiver[edge])),
            backwards=asked.side == "head",
        )

    def _name(self, graph: EvidenceGraph, entity: int) -> str:
        return self._graph.entities.name(int(graph.entities[entity]))

    def _attended(
        self, evidence: AnswerEvidence, entities: list[int], at: tuple[int, int] | None = None
    ) -> list[AttendedEntity]:
        """Names entities with their influence and attention, in all or in one layer and head."""
        rows = evidence.trace.attention
        if rows is None:
            return []
        influence = rows.influence.sum((0, 1)) if at is None else rows.influence[at]
        attention = rows.lift.mean((0, 1)) if at is None else rows.lift[at]
        return [
            AttendedEntity(
                entity=self._name(evidence.graph, w),
                influence=influence[w].item(),
                attention=attention[w].item(),
            )
            for w in entities
        ]

    def _heads(self, evidence: AnswerEvidence, count: int) -> list[HeadAttention]:
        rows, answer = evidence.trace.attention, evidence.placed.answer
        if rows is None:
            return []
        num_layers, num_heads, _ = rows.lift.shape
        return [
            HeadAttention(
                layer=layer + 1,
                head=head + 1,
                entities=self._attended(
                    evidence, largest(rows.lift[layer, head], count, besides=answer), (layer, head)
                ),
            )
            for layer in range(num_layers)
            for head in range(num_heads)
        ]

    def _why_no_paths(self, evidence: AnswerEvidence) -> str | None:
        if evidence.paths:
            return None
        if not evidence.sees_answer:
            return self._why_not_seen(evidence)
        prediction, names = evidence.prediction, self._graph.entities.names
        num_hops = len(evidence.trace.hops)
        start, end = names[prediction.head], names[prediction.answer]
        ends = f"from {self._labels.entity(start)} to {self._labels.entity(end)}"
        if evidence.graph.num_entities < len(names):
            ends += f" among the {evidence.graph.num_entities:,} entities that the model saw"
        if num_hops == 0:
            return "The value streams of this model have no hops, so it follows no paths."
        if start == end:
            return "The answer is the entity that the question starts from: there is no path to go."
        if evidence.distance >= UNREACHED:
            return f"No path of facts leads {ends}."
        if evidence.distance > num_hops:
            return (
                f"The shortest path {ends} has {evidence.distance} facts, and this model looks no "
                f"further than {num_hops}."
            )
        return (
            f"Paths lead {ends}, the shortest of length {evidence.distance}, but the facts on them "
            "speak against the answer."
        )

    def _why_not_seen(self, evidence: AnswerEvidence) -> str:
        names, prediction = self._graph.entities.names, evidence.prediction
        asked = asked_relation(prediction.relation, self._graph.relations)
        return (
            f"The model did not see {self._labels.entity(names[prediction.answer])}: this question "
            f"shows it {evidence.graph.num_entities:,} of {len(names):,} entities, those nearest "
            f"to {self._labels.entity(names[prediction.head])} and frequent {asked.side}s of "
            f"{self._labels.relation(asked.name)}, and all others rank below them by the same "
            "measure and count with their lowest score."
        )


def _why_no_prototypes(evidence: AnswerEvidence) -> str | None:
    if evidence.prototypes:
        return None
    if not evidence.sees_answer:
        return "An entity that the model did not see attends to none."
    if evidence.trace.attention is None:
        return "This model has no attention (model.attention is false), so it has no prototypes."
    return "The answer gains by no entity that is attended to."
