"""Words and numbers that a caller chooses from, in Python as on the command line.

They import nothing, so that a command's help need not wait for torch.
"""

from enum import StrEnum
from typing import Literal

PresetName = Literal["released", "paper"]
"""Settings of the authors' released code, or of the paper's text."""
SplitName = Literal["train", "valid", "test"]
"""Parts of a data set."""
FactsFrom = Literal["all", "train"]
"""Facts to reason from: all that a data set has, or those of training."""
Sweep = Literal["heads", "tails"]
"""Whom to ask for missing facts: a relation's heads for tails, or its tails for heads."""
AnswerEngine = Literal["local", "ray"]
"""Where a file of questions is answered: in this process, or on Ray, on one machine or many."""
AnswerFormat = Literal["jsonl", "parquet", "tsv", "csv"]
"""What a folder of answers may be written in."""
AsksFor = Literal["head", "tail"]
"""What a question that is explained asked for."""
NUM_PATHS = 5
"""Paths of an explanation."""
NUM_PROTOTYPES = 10
"""Entities of an explanation that the answer attends to."""


class Format(StrEnum):
    """What a file of facts may be written in."""

    TSV = "tsv"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    NTRIPLES = "ntriples"
    TURTLE = "turtle"
    RDFXML = "rdfxml"
    NQUADS = "nquads"
    TRIG = "trig"


class TrackerName(StrEnum):
    """Services that a training can be logged to."""

    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    WANDB = "wandb"
