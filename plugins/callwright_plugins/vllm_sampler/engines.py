"""The two ways to vLLM: its engine in this process, and its server. Both take token ids and give token ids."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict, field, frozen

from callwright.episodes.token_episode import EngineOutput
from callwright.errors import InfrastructureFailure
from callwright.machines.model_server import Connection, ContextExceeded, Server, Usage, usage_of

Made = Sequence[EngineOutput | InfrastructureFailure]


@frozen
class Demand:
    """One context to go on with. ``tags`` are structural tags; ``room`` is the most new tokens."""

    context: tuple[int, ...]
    room: int
    seed: int | None
    tags: Mapping[str, Any] | None = field(default=None, repr=False)


class OfflineEngine:
    """``vllm.LLM`` in this process; ``options`` are its own (``tensor_parallel_size``, ``max_model_len`` …)."""

    def __init__(self, model: str, ends: frozenset[int], options: Mapping[str, Any]) -> None:
        import vllm

        self._vllm: Any = vllm
        self._ends = sorted(ends)
        self._engine: Any = vllm.LLM(model=model, **dict(options))
        self._positions = int(self._engine.llm_engine.model_config.max_model_len)

    def generate(self, demands: Sequence[Demand], temperature: float, sampling: Mapping[str, Any]) -> Made:
        """A continuation of each context, all in one batch. One that leaves no room is truncated before it begins."""
        fitting = [number for number, demand in enumerate(demands) if len(demand.context) < self._positions]
        parameters = [self._parameters(demands[number], temperature, sampling) for number in fitting]
        prompts = [{"prompt_token_ids": list(demands[number].context)} for number in fitting]
        answers = self._engine.generate(prompts, parameters, use_tqdm=False) if fitting else []
        made = [EngineOutput((), (), False, filled=True)] * len(demands)
        for number, answer in zip(fitting, answers, strict=True):
            made[number] = _of_engine(answer.outputs[0], demands[number].room)
        return made

    def _parameters(self, demand: Demand, temperature: float, sampling: Mapping[str, Any]) -> Any:
        more: dict[str, Any] = dict(sampling)
        if demand.tags is not None:
            from vllm.sampling_params import StructuredOutputsParams

            more["structured_outputs"] = StructuredOutputsParams(structural_tag=json.dumps(demand.tags))
        return self._vllm.SamplingParams(
            n=1,
            temperature=temperature,
            seed=demand.seed,
            max_tokens=min(demand.room, self._positions - len(demand.context)),
            logprobs=0,
            stop_token_ids=self._ends,
            skip_special_tokens=False,
            **more,
        )


def _of_engine(output: Any, room: int) -> EngineOutput:
    ids = tuple(output.token_ids)
    logprobs: tuple[float, ...] = ()
    if output.logprobs:
        logprobs = tuple(float(place[token].logprob) for token, place in zip(ids, output.logprobs, strict=True))
    cut = output.finish_reason == "length"
    return EngineOutput(ids, logprobs, not cut, filled=cut and len(ids) < room)


class ServerEngine:
    """A running vLLM server (``vllm serve``): ``/v1/completions`` with token ids in and out."""

    def __init__(self, server: Server, ends: frozenset[int]) -> None:
        self.server = server
        self._ends = sorted(ends)

    @property
    def usage(self) -> Usage:
        """What was asked, and how many tokens that were."""
        return self.server.usage

    def generate(self, demands: Sequence[Demand], temperature: float, sampling: Mapping[str, Any]) -> Made:
        """A continuation of each context, asked for at the same time.

        Raises :class:`callwright.UsageError` for what repeating cannot mend.
        """

        def asking(demand: Demand) -> Any:
            async def ask(connection: Connection) -> EngineOutput | InfrastructureFailure:
                return await self.one(connection, demand, temperature, sampling)

            return ask

        found = self.server.all([asking(demand) for demand in demands])
        made: list[EngineOutput | InfrastructureFailure] = []
        for answer in found:
            if isinstance(answer, BaseException) and not isinstance(answer, InfrastructureFailure):
                raise answer
            made.append(answer)
        return made

    async def one(
        self, connection: Connection, demand: Demand, temperature: float, sampling: Mapping[str, Any]
    ) -> EngineOutput | InfrastructureFailure:
        """A continuation of one context."""
        extra: dict[str, Any] = {
            "return_token_ids": True,
            "stop_token_ids": self._ends,
            "skip_special_tokens": False,
            "add_special_tokens": False,
            **sampling,
        }
        if demand.tags is not None:
            extra["structured_outputs"] = {"structural_tag": json.dumps(demand.tags)}
        try:
            answer = await connection.complete(
                demand.context,
                max_tokens=demand.room,
                temperature=temperature,
                **({} if demand.seed is None else {"seed": demand.seed}),
                logprobs=0,
                extra_body=extra,
            )
        except ContextExceeded:
            return EngineOutput((), (), False, filled=True)
        except InfrastructureFailure as error:
            return error
        choices = answer.get("choices") or [{}]
        usage = {name: value for name, value in asdict(usage_of(answer, self.server.prices)).items() if value}
        return _of_server(choices[0], usage, self.server, demand.room)


def _of_server(
    choice: Mapping[str, Any], usage: Mapping[str, float], server: Server, room: int
) -> EngineOutput | InfrastructureFailure:
    ids = choice.get("token_ids")
    if not isinstance(ids, list):
        return InfrastructureFailure(
            f"{server.label} gave no token ids: it must be a vLLM server that knows return_token_ids"
        )
    listed = (choice.get("logprobs") or {}).get("token_logprobs") or []
    logprobs = tuple(float(one) for one in listed) if len(listed) == len(ids) else ()
    cut = choice.get("finish_reason") == "length"
    return EngineOutput(tuple(ids), logprobs, not cut, usage, filled=cut and len(ids) < room)
