"""Sampling with a trainer's model: transformers' generation, or the vLLM that the trainer has."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList
from trl.models import unwrap_model_for_generation

from callwright.episodes.token_episode import EngineOutput
from callwright.errors import UsageError


def check_trainer(trainer: Any) -> None:
    """Raise :class:`callwright.UsageError` for a trainer whose model cannot be sampled turn by turn."""
    if trainer.use_transformers_continuous_batching:
        raise UsageError("rollout_func samples turn by turn; leave use_transformers_continuous_batching off")
    if trainer.accelerator.num_processes == 1:
        return
    # Processes have different numbers of turns, and whoever is done would be waited for by the others.
    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    if trainer.use_vllm or sharded:
        raise UsageError(
            "rollout_func cannot sample with vLLM, FSDP or DeepSpeed in several processes: their episodes have "
            "different numbers of turns. Use one process, or plain data parallelism with transformers' generation"
        )


class TrainerEngine:
    """Completions of token ids by the trainer's model as it is now, at the trainer's temperature.

    A completion that would be longer than its room is cut there, which leaves the distribution of what is kept as it
    was.
    """

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.ends = frozenset(trainer.eos_token_ids)

    def __call__(self, contexts: Sequence[tuple[int, ...]], rooms: Sequence[int | None]) -> list[EngineOutput]:
        """One completion for each context."""
        longest = self.trainer.max_completion_length
        most = [longest if room is None else min(room, longest) for room in rooms]
        if self.trainer.use_vllm:
            drawn = self._vllm(contexts)
        else:
            drawn = self._transformers(contexts, max(most))
        return [self._cut(ids, logprobs, room) for (ids, logprobs), room in zip(drawn, most, strict=True)]

    def _cut(self, ids: Sequence[int], logprobs: Sequence[float], room: int) -> EngineOutput:
        for at, token in enumerate(ids[:room]):
            if token in self.ends:
                return EngineOutput(tuple(ids[: at + 1]), tuple(logprobs[: at + 1]))
        return EngineOutput(tuple(ids[:room]), tuple(logprobs[:room]), finished=False)

    def _vllm(self, contexts: Sequence[tuple[int, ...]]) -> list[tuple[list[int], list[float]]]:
        """TRL has synchronised the weights before it calls a rollout function."""
        _, ids, logprobs, _ = self.trainer.vllm_generation.generate(
            prompts=[list(context) for context in contexts], images=None, num_generations=1
        )
        own = [[float("nan") if one[0] is None else one[0] for one in row] for row in logprobs]
        return list(zip(ids, own, strict=True))

    def _transformers(self, contexts: Sequence[tuple[int, ...]], longest: int) -> list[tuple[list[int], list[float]]]:
        trainer = self.trainer
        device = trainer.accelerator.device
        pad = trainer.generation_config.pad_token_id
        width = max(map(len, contexts))
        rows = [[pad] * (width - len(context)) + list(context) for context in contexts]
        seen = [[0] * (width - len(context)) + [1] * len(context) for context in contexts]
        options = copy.deepcopy(trainer.generation_config)
        options.max_new_tokens = longest
        kept = KeptLogprobs(trainer.temperature)
        with (
            unwrap_model_for_generation(
                trainer.model_wrapped,
                trainer.accelerator,
                gather_deepspeed3_params=trainer.args.ds3_gather_for_generation,
                generation_kwargs={**trainer.generation_kwargs, "max_new_tokens": longest},
                gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
            ) as model,
            torch.no_grad(),
        ):
            output = model.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(seen, device=device),
                generation_config=options,
                logits_processor=LogitsProcessorList([kept]),
            )
        drawn = output[:, width:]
        return list(zip(drawn.tolist(), kept.of(drawn).tolist(), strict=True))


class KeptLogprobs(LogitsProcessor):  # type: ignore[misc]
    """Log-probabilities of what is sampled, kept step by step: a row of logits a step would not fit into memory.

    They are of the whole distribution at the temperature, as TRL computes its own, before top-k, top-p and min-p.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature
        self._columns: list[Tensor] = []
        self._last: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Look up the token that came of the last scores, and keep these."""
        if self._last is not None:
            self._columns.append(self._last.gather(1, input_ids[:, -1:]))
        self._last = torch.log_softmax(scores.float() / self.temperature, -1)
        return scores

    def of(self, drawn: Tensor) -> Tensor:
        """``[B, L]`` for the sampled ids ``[B, L]``; what stands after an end token means nothing."""
        assert self._last is not None
        columns = [*self._columns, self._last.gather(1, drawn[:, -1:])]
        return torch.cat(columns, 1)
