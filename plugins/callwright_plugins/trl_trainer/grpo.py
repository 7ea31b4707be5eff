"""TRL's trainer with the rollouts, rewards and advantages of a recipe. Its loss and its optimiser are TRL's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor
from trl import GRPOTrainer

from callwright.training.algorithm import Algorithm
from callwright.training.rollouts.learning_rates import learning_rate
from callwright_plugins.trl_trainer.batches import MiniBatch, Row, shared_out
from callwright_plugins.trl_trainer.options import Options
from callwright_plugins.trl_trainer.rollouts import Collected

#: Our names of TRL's figures, which are means over tokens.
FIGURES: Final[Mapping[str, str]] = {
    "kl": "kl",
    "entropy": "entropy",
    "clip_ratio/low_mean": "clip_fraction_low",
    "clip_ratio/high_mean": "clip_fraction_high",
    "clip_ratio/region_mean": "clip_fraction",
}
#: Tensors of TRL's batch that have a column for each token of a completion.
_COMPLETIONS: Final = (
    "completion_ids", "completion_mask", "tool_mask", "old_per_token_logps", "ref_per_token_logps",
    "sampling_per_token_logps",
)  # fmt: skip


class RecipeGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """:class:`trl.GRPOTrainer` whose batches come from :attr:`collect` in place of a data set and reward functions.

    What is TRL's: the model and its adapter, reference, log-probabilities, per-token loss, importance correction,
    optimiser, distribution, checkpoints. What is ours: which tasks, episodes, rewards and advantages there are, how
    rows are put into micro-batches, what their loss is divided by, and the learning rate of each step.
    """

    #: Gives the rollouts of a step (from 0). Set before training.
    collect: Callable[[int], Collected]
    #: Told when the rollouts of a step are there, and its optimiser steps begin.
    changing: Callable[[], object]
    options: Options
    algorithm: Algorithm

    def __init__(self, *, recipe_options: Options, algorithm: Algorithm, **arguments: Any) -> None:
        super().__init__(reward_funcs=[_rewarded_elsewhere], **arguments)
        self.options, self.algorithm = recipe_options, algorithm
        self.collected: Collected | None = None
        self._buffered_inputs: list[dict[str, Any]] | None = None
        self._minis: list[MiniBatch] = []
        self._totals: dict[str, float] = {}
        self._loss = torch.zeros((), device=self.accelerator.device)
        self._faults: list[str] = []
        self._not_finite: list[str] = []
        for model in (self.model, self.ref_model):
            if model is not None:
                self.accelerator.unwrap_model(model).register_forward_pre_hook(_count_positions, with_kwargs=True)

    # The batch of a step

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        """The next micro-batch; new rollouts where the last ones are used up."""
        per_mini, minis = self.options.micro_batches, self.options.mini_batches
        place = self._step % (per_mini * minis * self.options.iterations)
        if place == 0 or self._buffered_inputs is None:
            self._buffered_inputs = self._slices(self._generate_and_score_completions(generation_batch))
            self.changing()
        found: dict[str, Any] = self._buffered_inputs[place % (per_mini * minis)]
        return found

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        """The rollouts of this step, in the order in which they are trained on, as TRL has them."""
        step = self.state.global_step // self.options.updates
        self.collected = collected = self.collect(step)
        self._minis = shared_out(
            collected, self.algorithm, self.options, self.max_completion_length, self.accelerator.process_index
        )
        rows = [row for mini in self._minis for part in mini.parts for row in part.rows]
        found = [self._row(collected, row) for row in rows]
        prompt_ids, ids, mask, logprobs = (list(column) for column in zip(*found, strict=True))
        return prompt_ids, ids, mask, [""] * len(rows), logprobs if self.use_vllm else None, {}, None, []

    def _row(self, collected: Collected, row: Row) -> tuple[list[int], list[int], list[int], list[float]]:
        if row is None:
            filler = int(self._tokenizer.pad_token_id)
            return [filler], [filler], [0], [0.0]
        group = collected.groups[row[0]]
        one = group.rollouts[row[1]]
        return list(group.prompt), list(one.ids), list(one.mask), list(one.logprobs)

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Tensor:
        """Nothing: advantages are the algorithm's (:meth:`_slices`)."""
        rows = len(completion_ids_list) * self.accelerator.num_processes
        return torch.zeros(rows, 1, device=self.accelerator.device)

    def _slices(self, output: dict[str, Any]) -> list[dict[str, Any]]:
        """TRL's batch in micro-batches, without the padding that only other micro-batches need."""
        assert self.collected is not None
        parts, begin = [], 0
        for mini in self._minis:
            for part in mini.parts:
                rows = slice(begin, begin + len(part.rows))
                begin += len(part.rows)
                one = {name: value[rows] if value.dim() else value for name, value in output.items()}
                advantages = [0.0 if row is None else float(self.collected.advantages[row]) for row in part.rows]
                one["advantages"] = torch.tensor(advantages, device=self.accelerator.device)
                one["num_items_in_batch"] = torch.tensor(float(max(1, mini.tokens)), device=self.accelerator.device)
                parts.append({**_trimmed(one), "mini": mini, "part": part})
        return parts

    # The loss

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        """TRL's loss of a micro-batch, divided by what the algorithm divides the whole mini-batch by."""
        mini, part = inputs.pop("mini"), inputs.pop("part")
        try:
            loss: Tensor = super()._compute_loss(model, inputs)
        finally:
            inputs |= {"mini": mini, "part": part}
        loss = loss * (self._divisor(mini, len(part.rows)) * self.accelerator.num_processes / mini.normaliser)
        self._loss += loss.detach()
        share = part.tokens / max(1, sum(one.tokens for one in self._minis)) / self.options.iterations
        for theirs, ours in FIGURES.items():
            values = self._metrics["train"].get(theirs)
            if values and math.isfinite(values[-1]):
                self._totals[ours] = self._totals.get(ours, 0.0) + share * values[-1]
        if not bool(torch.isfinite(loss.detach())):
            self._faults.append(f"loss {float(loss.detach()):.4g}")
        return loss

    def _divisor(self, mini: MiniBatch, rows: int) -> float:
        """What TRL has divided the sum over tokens (over sequences, for ``grpo``) by."""
        parts = self.current_gradient_accumulation_steps
        if self.loss_type == "grpo":
            return float(rows * parts)
        if self.loss_type == "dr_grpo":
            return float(rows * parts * self.max_completion_length)
        share = parts / self.args.steps_per_generation
        return float(max(1, mini.tokens) / self.accelerator.num_processes * share)

    # The step

    def get_decay_parameter_names(self, model: Any) -> list[str]:
        """All of them, as the trainer ``local`` does; transformers leaves biases and norms out."""
        return [name for name, _ in model.named_parameters()]

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The recipe's schedule; every optimiser step of one batch of rollouts has the same rate."""
        if getattr(self, "lr_scheduler", None) is None:
            self.lr_scheduler: Any = torch.optim.lr_scheduler.LambdaLR(
                self.optimizer if optimizer is None else optimizer, lambda update: self.rate(update) / self.peak
            )
        return self.lr_scheduler

    @property
    def peak(self) -> float:
        """The learning rate after the warm-up."""
        return self.options.learning_rate

    def rate(self, update: int) -> float:
        """The learning rate of an optimiser step, counted from 0."""
        options = self.options
        step = min(update // options.updates, options.steps - 1)
        return learning_rate(
            step, options.steps, options.learning_rate, options.warm_up, options.schedule, options.schedule_floor
        )

    def _clip_grad_norm(self, model: Any) -> Any:
        """Clip; a gradient that is not finite, or of nothing at all, takes no step."""
        norm = super()._clip_grad_norm(model)
        found = float(norm)
        mini = self._minis[(self.state.global_step % self.options.updates) % self.options.mini_batches]
        if not math.isfinite(found):
            self._faults.append(f"gradient norm {found:.4g}")
        elif self._anywhere(bool(self._faults)) and not self._faults:
            self._faults.append("loss not finite in another process")
        if self._faults or not mini.active:
            for parameter in model.parameters():
                parameter.grad = None  # AdamW leaves such a weight, and its moments, as they are
        self._figure("gradient_norm", found if not self._faults else math.nan)
        loss = float(self.accelerator.reduce(self._loss.clone(), reduction="mean"))
        self._figure("loss", loss if not self._faults else math.nan)
        self._loss.zero_()
        self._not_finite += self._faults
        self._faults = []
        return norm

    def _anywhere(self, here: bool) -> bool:
        """Whether it is so in any process."""
        if self.accelerator.num_processes == 1:
            return here
        flag = torch.tensor([float(here)], device=self.accelerator.device)
        return bool(self.accelerator.reduce(flag, reduction="sum").item())

    def _figure(self, name: str, value: float) -> None:
        self._totals[name] = self._totals.get(name, 0.0) + value / self.options.updates

    def begin_figures(self) -> None:
        """Forget the figures of the last step."""
        self._totals, self._not_finite = {}, []
        if not self.options.trackers:
            self._metrics["train"].clear()

    @property
    def figures(self) -> tuple[dict[str, float], list[str]]:
        """Of the step so far: means over its tokens and optimiser steps, and what was not finite, in words."""
        return dict(self._totals), list(self._not_finite)

    def create_model_card(self, *arguments: Any, **more: Any) -> None:
        """None: a run folder says what was trained, and how."""


def _rewarded_elsewhere(**_: Any) -> list[float]:
    raise AssertionError("rewards are the recipe's")


def _count_positions(module: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
    """Count positions from the first token that is not padding, as in sampling: TRL leaves them to the model."""
    mask = keywords.get("attention_mask")
    if isinstance(mask, Tensor) and mask.dim() == 2 and keywords.get("position_ids") is None:
        ids = keywords.get("input_ids")
        if isinstance(ids, Tensor) and ids.shape == mask.shape:
            keywords["position_ids"] = (mask.long().cumsum(1) - 1).clamp(min=0)
    return arguments, keywords


def _trimmed(part: dict[str, Any]) -> dict[str, Any]:
    """A micro-batch without columns that hold nothing but padding."""
    width = int(part["completion_mask"].sum(1).max())
    skip = part["prompt_mask"].shape[1] - int(part["prompt_mask"].sum(1).max())
    cut = {name: value[:, :width] for name, value in part.items() if name in _COMPLETIONS}
    ratio = part.get("importance_sampling_ratio")
    if ratio is not None and ratio.shape[1] > 1:
        cut["importance_sampling_ratio"] = ratio[:, :width]
    return {**part, **cut, **{name: part[name][:, skip:] for name in ("prompt_ids", "prompt_mask")}}
