"""Reason over knowledge graphs with the KnowFormer transformer.

from knowformer import Reasoner, train

reasoner = train("umls-pykeen", "runs/umls")
reasoner.answer(head="aspirin", relation="treats")
"""

from knowformer.answering.batch_job import BatchSummary
from knowformer.answering.results import (
    Answer,
    Answers,
    AnswerStream,
    MissingFact,
    MissingFacts,
    NoiseSpread,
)
from knowformer.data.dataset import Dataset, load_dataset
from knowformer.errors import KnowformerError
from knowformer.evaluation.evaluate import evaluate
from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
from knowformer.explanation.explanation import Explanation
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.pipeline import train
from knowformer.reasoner import Reasoner
from knowformer.training.config import RunConfig, TrainingConfig

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AnswerStream",
    "Answers",
    "BatchSummary",
    "Dataset",
    "Explanation",
    "FaithfulnessReport",
    "KnowformerError",
    "KnowledgeGraph",
    "MissingFact",
    "MissingFacts",
    "ModelConfig",
    "NoiseSpread",
    "Reasoner",
    "RunConfig",
    "TrainingConfig",
    "evaluate",
    "load_dataset",
    "train",
]
