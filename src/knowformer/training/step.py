"""TrainingStep: one update of the weights, and of their moving average."""

import math
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor

from knowformer.errors import NonFiniteLossError
from knowformer.kernels.interface import QueryView
from knowformer.model.knowformer import KnowFormer, ordered_parameters
from knowformer.model.micro_batches import micro_batch_size
from knowformer.model.noise import identity_noise
from knowformer.model.run import run
from knowformer.queries.query import QueryBatch
from knowformer.queries.scores import Scores
from knowformer.seeding import derive_seed, generator
from knowformer.system.workers import Workers
from knowformer.training.config import RunConfig
from knowformer.training.gradients import MicroBatch, MicroBatchLoss, accumulate_gradients
from knowformer.training.losses import binary_loss, cross_entropy_loss
from knowformer.training.optimizer import learning_rate
from knowformer.training.sampling.edge_removal import visible_edges
from knowformer.training.sampling.epochs import TrainingGraph
from knowformer.training.sampling.negatives import sample_negatives
from knowformer.training.sampling.relation_permutation import permute_relations


class TrainingStep:
    """Updates a model in place; ``ema`` is the model to validate and save.

    Randomness is a function of the seed and the step's number.
    """

    def __init__(
        self,
        model: KnowFormer,
        optimizer: torch.optim.Optimizer,
        config: RunConfig,
        workers: Workers,
        *,
        batch_size: int,
    ) -> None:
        """Prepares the moving average.

        Args:
            model: the model to train.
            optimizer: of its parameters; its learning rate is set at each step.
            config: the run's settings.
            workers: the threads that share a batch.
            batch_size: queries of a full batch, which decide the size of micro-batches.
        """
        self.model = model
        self.ema = deepcopy(model) if config.training.averaging else model
        self._optimizer = optimizer
        self._config = config
        self._workers = workers
        self._batch_size = batch_size
        self._parameters = ordered_parameters(model)

    def __call__(
        self, graph: TrainingGraph, batch: QueryBatch, *, step: int, progress: float
    ) -> float:
        """Updates the weights once and returns the loss before.

        Args:
            graph: what the batch sees.
            batch: the queries.
            step: number of the step.
            progress: fraction of the run that is done, for the learning rate.

        Raises:
            NonFiniteLossError: loss or gradient are not finite; the weights are unchanged.
        """
        training = self._config.training
        value = self.differentiate(graph, batch, step=step)
        if not math.isfinite(value):
            raise NonFiniteLossError(step=step, loss=value, batch=batch.describe())
        norm = torch.nn.utils.clip_grad_norm_(
            self._parameters, training.gradient_clip, foreach=True
        )
        if not torch.isfinite(norm):
            raise NonFiniteLossError(
                step=step, loss=value, batch=batch.describe(), gradient_norm=norm.item()
            )
        rate = learning_rate(training, step=step, progress=progress)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._update_ema(step)
        return value

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last step."""
        return self._optimizer.param_groups[0]["lr"]

    def differentiate(self, graph: TrainingGraph, batch: QueryBatch, *, step: int) -> float:
        """Replaces the model's gradients by those of a batch and returns its loss."""
        config, training = self._config, self._config.training
        edges = visible_edges(
            graph.adjacency,
            batch,
            hide=training.hide,
            dropout=training.edge_dropout,
            generator=generator(config.seed, "edges", step),
        )
        batch = batch.by_relation()
        num_entities = graph.adjacency.num_entities
        self._optimizer.zero_grad()
        return accumulate_gradients(
            self.model,
            QueryView.whole(edges, batch.heads),
            batch.relations,
            identity_noise(config.model, graph.entity_keys, seed=config.seed, draw=step),
            self._micro_batch_loss(graph, batch, step),
            size=micro_batch_size(self._batch_size, num_entities, config.model.hidden_dim),
            workers=self._workers,
            permutation=permute_relations(
                graph.adjacency.num_relations,
                training.relation_swaps,
                generator=generator(config.seed, "relations", step),
            ),
        )

    def _micro_batch_loss(
        self, graph: TrainingGraph, batch: QueryBatch, step: int
    ) -> MicroBatchLoss:
        """Returns the function from a micro-batch to its summand of the batch's loss."""
        seed, training = self._config.seed, self._config.training

        def loss(part: MicroBatch) -> Tensor:
            dropout = np.random.SFC64(derive_seed(seed, "dropout", step, part.number))
            values = run(
                part.weights, part.view, part.vectors, self.model.backend,
                first=part.first_states, dropout=np.random.Generator(dropout),
            )  # fmt: skip
            scores = Scores(values, part.view.offsets, graph.adjacency.num_entities)
            queries = batch.slice(part.first, part.last)
            known = scores.mask(*graph.known.lookup(queries.heads, queries.relations))
            columns = scores.columns(queries.rows, queries.tails)
            if training.loss == "cross_entropy":
                return cross_entropy_loss(
                    scores.table, known, queries.rows, columns, num_facts=len(batch.tails)
                )
            random = generator(seed, "negatives", step, part.number)
            return binary_loss(
                scores.table,
                known,
                queries.rows,
                columns,
                num_queries=len(batch),
                negatives=sample_negatives(known, training.num_negatives, generator=random),
                adversarial_temperature=training.adversarial_temperature,
            )

        return loss

    def _update_ema(self, step: int) -> None:
        """Moves the average towards the weights, faster in the first steps."""
        if self.ema is self.model:
            return
        decay = min(self._config.training.averaging, (1 + step) / (10 + step))
        with torch.no_grad():
            pairs = zip(self.ema.parameters(), self.model.parameters(), strict=True)
            for average, current in pairs:
                average.lerp_(current, 1.0 - decay)
