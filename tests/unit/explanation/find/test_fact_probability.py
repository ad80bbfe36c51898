import math

import pytest
import torch

from knowformer.answering.answerer import Answerer
from knowformer.calibration.calibrator import Calibrator
from knowformer.data.labels import Labels
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.queries.known_answers import KnownAnswers


def test_an_explained_answer_has_the_probability_that_answers_have(family: KnowledgeGraph) -> None:
    model = KnowFormer(ModelConfig(hidden_dim=8, num_layers=1), 2 * len(family.relations)).eval()
    initialize(model, generator=torch.Generator().manual_seed(0))
    known, calibrator = KnownAnswers.of(family), Calibrator(None, "softmax", family.relations)
    answerer = Answerer(
        model, family, known=known, calibrator=calibrator, labels=Labels(), seed=0, threads=1
    )
    question = answerer.question(head="eve", relation="mother_of")
    (answers,) = answerer.answer([question], answerer.options(k=9, new_only=True))
    finder = EvidenceFinder(model, family, known, seed=0, calibrator=calibrator)
    assert finder.probability is not None
    assert finder.probability.kind == "model"
    for answer in answers.answers:
        ids = (question.head, question.relation, family.entities.id(answer.name))
        prediction = finder.prediction(*ids)
        scores = finder.find(prediction).trace.scores
        found, log_odds = finder.probability.of(scores, prediction)
        assert found == pytest.approx(answer.probability, rel=1e-4)
        assert 1 / (1 + math.exp(-log_odds)) == pytest.approx(found)
