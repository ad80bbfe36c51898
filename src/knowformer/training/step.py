"""TrainingStep: one update of the weights, and of their moving average."""

import math
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor

from knowformer.errors import NonFiniteLossError
from knowformer.model.knowformer import KnowFormer, ordered_parameters
from knowformer.model.micro_batches import MICRO_BATCH_FLOATS, micro_batch_size
from knowformer.model.noise import identity_noise
from knowformer.model.run import run
from knowformer.queries.query import QueryBatch
from knowformer.queries.scores import Scores
from knowformer.seeding import derive_seed, generator
from knowformer.training.config import RunConfig
from knowformer.training.distributed import Pool
from knowformer.training.gradients import MicroBatch, MicroBatchLoss, accumulate_gradients
from knowformer.training.losses import binary_loss, cross_entropy_loss, pair_loss
from knowformer.training.optimizer import Adam, learning_rate
from knowformer.training.sampling.epochs import TrainingGraph
from knowformer.training.sampling.negatives import sample_negatives
from knowformer.training.sampling.relation_permutation import permute_relations
from knowformer.training.sampling.visibility import SeenBatch, see_views, see_whole_graph
from knowformer.views.extractor import extractor_of


class TrainingStep:
    """Updates a model in place; ``ema`` is the model to validate and save.

    Randomness is a function of the seed and the step's number.
    """

    def __init__(
        self,
        model: KnowFormer,
        optimizer: Adam,
        config: RunConfig,
        workers: Pool,
        *,
        batch_size: int,
    ) -> None:
        """Prepares the moving average.

        Args:
            model: the model to train.
            optimizer: of its parameters; its learning rate is set at each step.
            config: the run's settings.
            workers: the threads that share a batch, of this process or of several.
            batch_size: queries of a full batch, which decide the size of micro-batches.
        """
        self.model = model
        self.ema = deepcopy(model) if config.training.averaging else model
        self._optimizer = optimizer
        self._config = config
        self._workers = workers
        self._batch_size = batch_size
        self._parameters = ordered_parameters(model)

    def see(self, graph: TrainingGraph, batch: QueryBatch, step: int) -> SeenBatch:
        """Returns what the queries of a step see."""
        config, training = self._config, self._config.training
        random = generator(config.seed, "edges", step)
        settings = config.model.view_of(graph.adjacency.num_entities)
        if settings is None:
            return see_whole_graph(
                graph, batch,
                hide=training.hidden_edges, edge_dropout=training.edge_dropout, generator=random,
            )  # fmt: skip
        return see_views(
            extractor_of(graph.adjacency, graph.entity_keys, settings), graph, batch,
            hide=training.hidden_edges, edge_dropout=training.edge_dropout, generator=random,
        )  # fmt: skip

    def __call__(
        self, seen: SeenBatch, *, step: int, progress: float, schedule_start: int = 0
    ) -> float:
        """Updates the weights once and returns the loss before.

        Args:
            seen: the queries, and what they see; if there are none, nothing changes.
            step: number of the step.
            progress: fraction of the run that is done, for the learning rate.
            schedule_start: the step that the learning rate's warm-up begins with.

        Raises:
            NonFiniteLossError: loss or gradient are not finite; the weights are unchanged.
        """
        training, batch = self._config.training, seen.batch
        if not len(batch):
            return 0.0
        value = self.differentiate(seen, step=step)
        if not math.isfinite(value):
            raise NonFiniteLossError(step=step, loss=value, batch=batch.describe())
        norm = torch.nn.utils.clip_grad_norm_(
            self._parameters, training.gradient_clip, foreach=True
        )
        if not torch.isfinite(norm):
            raise NonFiniteLossError(
                step=step, loss=value, batch=batch.describe(), gradient_norm=norm.item()
            )
        rate = learning_rate(training, step=step - schedule_start, progress=progress)
        self._optimizer.learning_rate = rate
        self._optimizer.step()
        self._update_ema(step)
        return value

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last step."""
        return self._optimizer.learning_rate

    def differentiate(self, seen: SeenBatch, *, step: int) -> float:
        """Replaces the model's gradients by those of a batch and returns its loss."""
        config, adjacency = self._config, seen.graph.adjacency
        self._optimizer.zero_grad()
        return accumulate_gradients(
            self.model,
            seen.view,
            seen.batch.relations,
            identity_noise(config.model, seen.entity_keys, seed=config.seed, draw=step),
            self._micro_batch_loss(seen, step),
            size=self._micro_batch_size(seen),
            workers=self._workers,
            relation_graph=self.model.relation_graph(adjacency),
            permutation=permute_relations(
                adjacency.num_relations,
                config.training.relation_swaps,
                generator=generator(config.seed, "relations", step),
            ),
        )

    def _micro_batch_size(self, seen: SeenBatch) -> int:
        width = self._config.model.hidden_dim
        num_seen = self._config.model.num_seen(seen.graph.adjacency.num_entities)
        if seen.entities is None:
            return micro_batch_size(self._batch_size, num_seen, width)
        # In views fewer queries may be left than a full batch has, and the views of the next batch
        # are made meanwhile: small micro-batches leave no thread without work, as long as
        # their calls do not take longer than they do.
        least = min(MICRO_BATCH_FLOATS // (2 * num_seen * width), -(-len(seen.batch) // 2))
        return max(least, micro_batch_size(-(-len(seen.batch) // 2), num_seen, width))

    def _micro_batch_loss(self, seen: SeenBatch, step: int) -> MicroBatchLoss:
        """Returns the function from a micro-batch to its summand of the batch's loss."""
        seed, training = self._config.seed, self._config.training
        graph, batch = seen.graph, seen.batch

        def loss(part: MicroBatch) -> Tensor:
            dropout = np.random.SFC64(derive_seed(seed, "dropout", step, part.number))
            values = run(
                part.weights, part.view, part.vectors, self.model.backend,
                first=part.first_states, dropout=np.random.Generator(dropout),
            )  # fmt: skip
            rows = slice(int(seen.view.offsets[part.first]), int(seen.view.offsets[part.last]))
            entities = None if seen.entities is None else seen.entities[rows]
            scores = Scores(values, part.view.offsets, graph.adjacency.num_entities, entities)
            queries = batch.slice(part.first, part.last)
            known = scores.mask(*graph.known.lookup(queries.heads, queries.relations))
            known |= ~scores.is_candidate
            columns = scores.columns(queries.rows, queries.tails)
            if training.loss == "cross_entropy":
                return cross_entropy_loss(
                    scores.table, known, queries.rows, columns, num_facts=len(batch.tails)
                )
            if training.loss == "pairs":
                return pair_loss(
                    scores.table, known, queries.rows, columns, num_pairs=len(batch.tails)
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
