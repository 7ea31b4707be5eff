"""Sampling with TRL's model: transformers' generation, in which each episode draws from a seed of its own, or vLLM."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

import torch
from attrs import define
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList
from trl.models import unwrap_model_for_generation

from callwright.episodes.driving import drive
from callwright.episodes.pool import EpisodePool
from callwright.episodes.sampling import Start, draw_seed
from callwright.episodes.token_episode import Codec, EngineOutput, TokenEpisode
from callwright.training.rollouts.draws import seed_of
from callwright.walk.completion import Completion
from callwright.walk.sampling import SamplingRequest

#: A prompt of one token for a process that only keeps the others company.
_COMPANY: Final = 1


class SeededDraws(LogitsProcessor):  # type: ignore[misc]
    """Turns greedy decoding into sampling: each row's token is chosen by a number from the row's own seed.

    What is sampled for a row then hangs on its logits and its seed, never on the rows beside it, nor on how many
    processes share the work. The log-probabilities of what was chosen are kept.
    """

    def __init__(self, seeds: Sequence[int], temperature: float, count: int) -> None:
        rows = [torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(one)) for one in seeds]
        self._numbers = torch.stack(rows)  # [rows, count]
        self._temperature = temperature
        self._columns: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Leave one token of each row of ``scores`` ``[rows, V]`` possible."""
        logprobs = torch.log_softmax(scores.float() / self._temperature, -1)
        sums = logprobs.exp().cumsum(-1, dtype=torch.float64)
        drawn = self._numbers[:, len(self._columns)].to(sums.device).unsqueeze(1)
        token = torch.searchsorted(sums, drawn * sums[:, -1:], right=True).clamp(max=sums.shape[1] - 1)
        self._columns.append(logprobs.gather(1, token))
        return torch.full_like(scores, -torch.inf).scatter_(1, token, 0.0)

    def logprobs(self) -> Tensor:
        """``[rows, L]`` of the chosen tokens, in nats; what stands after an end token means nothing."""
        return torch.cat(self._columns, 1)


@define
class Company:
    """Turns in step: where every process must take part in a generation, those that are done wait in company.

    Models that are spread over processes, and vLLM engines, are asked by all of them together or by none.
    """

    accelerator: Any
    needed: bool

    def turn(self, active: bool) -> bool:
        """Whether any process still samples. Without a need for company, whether this one does."""
        if not self.needed:
            return active
        flag = torch.tensor([1.0 if active else 0.0], device=self.accelerator.device)
        return bool(self.accelerator.reduce(flag, reduction="sum").item() > 0)


class TrainerEngine:
    """Completions of token ids by a TRL trainer's model as it is now.

    ``temperature`` 0 is greedy decoding. A completion that would be longer than its room is cut there, which leaves the
    distribution of what is kept as it was.
    """

    def __init__(self, trainer: Any, temperature: float, rows_at_once: int, max_new_tokens: int) -> None:
        self.trainer = trainer
        self.temperature = temperature
        self._rows_at_once = rows_at_once
        self._max_new_tokens = max_new_tokens
        self._ends = frozenset(trainer.eos_token_ids)
        accelerator = trainer.accelerator
        shared = trainer.use_vllm or trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
        self._company = Company(accelerator, shared and accelerator.num_processes > 1)

    def drive(
        self, episodes: Sequence[TokenEpisode], seeds: Sequence[int], retries: int, pool: EpisodePool | None = None
    ) -> None:
        """Drive episodes to their end; each draws from its own of ``seeds``."""
        own = {id(episode): seed for episode, seed in zip(episodes, seeds, strict=True)}

        def ask(live: Sequence[TokenEpisode]) -> list[EngineOutput]:
            contexts = [episode.context for episode in live]
            drawn = [seed_of(own[id(one)], "turn", len(one.history), one.retried) for one in live]
            return self.continue_(contexts, [self._room(one.room, len(one.context)) for one in live], drawn)

        drive(episodes, ask, retries=retries, pool=pool)
        while self._company.turn(active=False):
            self._generate([(_COMPANY,)], 1, [0])

    def continue_(
        self, contexts: Sequence[tuple[int, ...]], rooms: Sequence[int], seeds: Sequence[int]
    ) -> list[EngineOutput]:
        """One completion for each context, of at most so many tokens as its room."""
        order = sorted(range(len(contexts)), key=lambda row: (len(contexts[row]), row))
        made: dict[int, EngineOutput] = {}
        for start in range(0, len(order), self._rows_at_once):
            some = order[start : start + self._rows_at_once]
            self._company.turn(active=True)
            longest = max(rooms[row] for row in some)
            drawn = self._generate([contexts[row] for row in some], longest, [seeds[row] for row in some])
            for row, (ids, logprobs) in zip(some, drawn, strict=True):
                made[row] = self._cut(ids, logprobs, rooms[row])
        return [made[row] for row in range(len(contexts))]

    def _room(self, room: int | None, length: int) -> int:
        positions = positions_of(self.trainer)
        left = self._max_new_tokens if positions is None else positions - length
        return max(1, min(self._max_new_tokens, left, self._max_new_tokens if room is None else room))

    def _cut(self, ids: Sequence[int], logprobs: Sequence[float], room: int) -> EngineOutput:
        for at, token in enumerate(ids[:room]):
            if token in self._ends:
                return EngineOutput(tuple(ids[: at + 1]), tuple(logprobs[: at + 1]))
        return EngineOutput(tuple(ids[:room]), tuple(logprobs[:room]), finished=False)

    def _generate(
        self, contexts: Sequence[tuple[int, ...]], longest: int, seeds: Sequence[int]
    ) -> list[tuple[list[int], list[float]]]:
        if self.trainer.use_vllm and self.temperature:
            return self._vllm(contexts)
        return self._transformers(contexts, longest, seeds)

    def _vllm(self, contexts: Sequence[tuple[int, ...]]) -> list[tuple[list[int], list[float]]]:
        """By TRL's own path, which first sends the weights if they have changed."""
        ids, logprobs = self.trainer._generate_single_turn([list(one) for one in contexts], None, {}, 1)
        known = [[float("nan") if one is None else float(one) for one in row] for row in logprobs]
        return list(zip(ids, known, strict=True))

    def _transformers(
        self, contexts: Sequence[tuple[int, ...]], longest: int, seeds: Sequence[int]
    ) -> list[tuple[list[int], list[float]]]:
        trainer = self.trainer
        device = trainer.accelerator.device
        pad = trainer._tokenizer.pad_token_id
        width = max(map(len, contexts))
        rows = [[pad] * (width - len(context)) + list(context) for context in contexts]
        seen = [[0] * (width - len(context)) + [1] * len(context) for context in contexts]
        told = {"max_new_tokens": longest, "do_sample": False, "temperature": None, "top_k": None, "top_p": None}
        told["disable_compile"] = True
        ends = {"pad_token_id": pad, "eos_token_id": list(trainer.eos_token_ids)}
        kept = SeededDraws(seeds, self.temperature, longest) if self.temperature else None
        with (
            unwrap_model_for_generation(
                trainer.model_wrapped,
                trainer.accelerator,
                gather_deepspeed3_params=trainer.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
            ) as model,
            torch.no_grad(),
            trainer._dist.summon_full_params(trainer.model_wrapped, recurse=False),
            trainer.accelerator.autocast(),
        ):
            settings = copy.deepcopy(model.generation_config)
            settings.update(**told, **ends)
            output = model.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(seen, device=device),
                generation_config=settings,
                logits_processor=LogitsProcessorList([] if kept is None else [kept]),
            )
        drawn = output[:, width:]
        logprobs = torch.zeros(drawn.shape) if kept is None else kept.logprobs()
        return list(zip(drawn.tolist(), logprobs.tolist(), strict=True))


class TrainerSampler:
    """A TRL trainer's model as a sampler, for evaluations."""

    name = "trl"

    def __init__(self, trainer: Any, codec: Codec, rows_at_once: int, max_new_tokens: int, pool: EpisodePool) -> None:
        self._trainer = trainer
        self._codec = codec
        self._rows_at_once = rows_at_once
        self._max_new_tokens = max_new_tokens
        self._pool = pool

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions; ``temperature`` 0 is greedy decoding."""
        engine = self._engine(temperature)
        prompts = [self._codec.prompt_ids(one.messages, one.task) for one in requests]
        seeds = [seed_of(draw_seed(seed, one.task.id, copy), "turn", 0) for one in requests for copy in range(n)]
        rooms = [engine._room(None, len(prompt)) for prompt in prompts for _ in range(n)]
        made = iter(engine.continue_([prompt for prompt in prompts for _ in range(n)], rooms, seeds))
        return [[self._completion(next(made)) for _ in range(n)] for _ in requests]

    def _completion(self, output: EngineOutput) -> Completion:
        text = self._codec.text(output.token_ids)
        return Completion(text, output.token_ids, output.logprobs, not output.finished)

    def converse(
        self,
        requests: Sequence[SamplingRequest],
        start: Start,
        *,
        n: int = 1,
        seed: int = 0,
        temperature: float = 1.0,
        retries: int = 0,
    ) -> list[list[TokenEpisode]]:
        """``[B][n]`` episodes, as token ids throughout."""
        groups = [[start(request, self._codec, copy) for copy in range(n)] for request in requests]
        episodes = [one for group in groups for one in group]
        self._engine(temperature).drive(episodes, [one.conditions.seed for one in episodes], retries, self._pool)
        return groups

    def _engine(self, temperature: float) -> TrainerEngine:
        return TrainerEngine(self._trainer, temperature, self._rows_at_once, self._max_new_tokens)


def positions_of(trainer: Any) -> int | None:
    """How many tokens the model can hold, prompt and completion together; ``None`` if it does not say."""
    config = trainer.accelerator.unwrap_model(trainer.model).config.get_text_config()
    room: int | None = getattr(config, "max_position_embeddings", None)
    return room
