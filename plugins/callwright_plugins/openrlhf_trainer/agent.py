"""The episodes of a run inside of OpenRLHF's engine processes. Nothing here imports OpenRLHF, Ray or vLLM.

The generated entry module makes an ``AgentExecutor`` of :class:`Agent`. OpenRLHF calls ``execute`` once for each
completion of a prompt, all of a prompt at the same time and on the same object, and takes ids, ranges and reward from
what comes back. The episode itself is :class:`callwright.episodes.token_episode.TokenEpisode`, as everywhere else.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, evolve

from callwright.episodes.driving import drive_one
from callwright.episodes.rewards import asked_again, asked_until_known
from callwright.episodes.sampling import of_copy
from callwright.episodes.token_episode import Codec, EngineOutput, TokenEpisode
from callwright.errors import DataError, InfrastructureFailure, RunError
from callwright.training.evaluation import Verdict, judge
from callwright.training.run_folder import write_atomically
from callwright.walk.completion import Completion
from callwright.walk.conditions import Progress
from callwright.walk.reward import TRUNCATED, Reward
from callwright.walk.tasks import Task
from callwright.walk.trace import observations
from callwright_plugins.openrlhf_trainer.configuration import load_pipeline, make_codec, read_configuration
from callwright_plugins.openrlhf_trainer.groups import Groups, RewardGroup, grid_step, share, steady
from callwright_plugins.openrlhf_trainer.prompts import digest_of_ids
from callwright_plugins.openrlhf_trainer.spool import SpoolWriter

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

#: What the names of our figures begin with among OpenRLHF's.
PREFIX: Final = "callwright/"
#: Masked episodes in a row, at least, after which the machinery counts as broken and the run ends.
MASKED_IN_A_ROW: Final = 16


class Agent:
    """Drives episodes for OpenRLHF. ``config`` is the file that the trainer wrote beside the entry module.

    Raises :class:`callwright.errors.DataError` if it is not there: on a cluster, every node must see the run folder.
    """

    def __init__(self, config: str | Path) -> None:
        self.folder = Path(config).parent
        with _Recording(self.folder):
            self.configuration = read_configuration(Path(config))
            exported = json.loads((self.folder / "prompts.json").read_bytes())
            self._form, self._ends = str(exported["form"]), frozenset(exported["ends"])
            self.end_texts: list[str] = exported["end_texts"]
            self.pipeline: Pipeline = load_pipeline(self.configuration)
        self._tasks: dict[str, dict[str, Task]] = {}
        self._splits = {self.pipeline.train, self.pipeline.evaluation}
        self._codec: Codec | None = None
        self._groups = Groups()
        self._masked_in_a_row = 0
        reward = self.pipeline.reward
        self._step = grid_step(self.configuration.group, max(abs(reward.low), abs(reward.high)))
        self.spool = SpoolWriter(self.folder / "spool" / read_start(self.folder))

    async def execute(
        self,
        prompt: str,
        label: str,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        """One episode, as OpenRLHF asks for it.

        An error is written to ``failure.json``, which the trainer reads, and raised again, which ends the run: an
        episode without a reward must not reach training.
        """
        with _Recording(self.folder):
            return await self._execute(prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine)

    async def _execute(
        self, prompt: str, label: str, sampling_params: Any, max_length: int, tokenizer: Any, engine: Any
    ) -> dict[str, Any]:
        row = read_label(label)
        group, copy = self._groups.join((row["split"], row["row"], row["evaluation"]), row["copies"])
        reported = False
        try:
            rollout = self._start(row, copy, tokenizer, max_length)
            asked = _Asking(engine, sampling_params, self._ends_of(tokenizer), max_length)
            await drive_one(rollout, asked, retries=self.configuration.retries, threads=True)
            attempt, reward = await asked_until_known(rollout.attempt, self.configuration.retries, self.pipeline.ascore)
            verdict = await asyncio.to_thread(judge, attempt)
            self._watch(rollout, reward)
            place = len(group.rewards)
            total = None if reward.total is None else steady(reward.total, self._step)
            reported = True
            Groups.report(group, total)
        finally:
            if not reported:  # whoever waits for this one need not wait for ever
                Groups.report(group, None)
        if total is None or (self.configuration.filtered and not row["evaluation"]):
            await group.whole.wait()
        self._keep(row, place, rollout, reward, verdict, group)
        return self._response(prompt, label, sampling_params, rollout, reward, verdict, total, group)

    def _start(self, row: Mapping[str, Any], copy: int, tokenizer: Any, max_length: int) -> TokenEpisode:
        task = self._task(row)
        limits = self.configuration.limits
        room = max_length if limits.context_tokens is None else min(max_length, limits.context_tokens)
        conditions = evolve(
            self.pipeline.conditions,
            limits=evolve(limits, context_tokens=room),
            progress=read_progress(self.folder, self.configuration.steps),
        )
        # A row is used once in a training, so it says what a step does; its samples differ by their number.
        conditions = of_copy(conditions, task, copy, row["row"] + 1)
        rollout = self.pipeline.token_episode(task, self._codec_of(tokenizer), conditions=conditions)
        if digest_of_ids(rollout.prompt_ids) != row["prompt"]:
            rollout.close()
            raise DataError(
                f"the prompt of task {task.id!r} comes out in other tokens than when it was exported: tokenizer, "
                "plugins or corpus have changed since; start in a new run folder"
            )
        return rollout

    def _task(self, row: Mapping[str, Any]) -> Task:
        split = row["split"]
        if split not in self._tasks and split in self._splits:
            self._tasks[split] = {task.id: task for task in self.pipeline.tasks(split)}
        task = self._tasks.get(split, {}).get(row["task"])
        if task is None:
            raise DataError(f"the corpus has no task {row['task']!r} in the split {split!r} any more")
        return task

    def _codec_of(self, tokenizer: Any) -> Codec:
        """Made of the first tokenizer that comes: Ray sends a copy of the same one with every prompt."""
        if self._codec is None:
            options = self.configuration.template_options
            self._codec = make_codec(tokenizer, self.pipeline, self._form, self._ends, options)
        return self._codec

    def _ends_of(self, tokenizer: Any) -> frozenset[int]:
        return self._codec_of(tokenizer).ends

    def _watch(self, rollout: TokenEpisode, reward: Reward) -> None:
        """End the run if nothing works any more: a whole update of masked completions would divide by 0 tokens."""
        if reward.total is not None:
            self._masked_in_a_row = 0
            return
        self._masked_in_a_row += 1
        if self._masked_in_a_row >= max(MASKED_IN_A_ROW, 2 * self.configuration.group):
            raise RunError(
                f"{self._masked_in_a_row} episodes one after the other were masked, the last one because "
                f"{rollout.masked or reward.masked}. Put it right and go on with the run"
            )

    def _response(
        self,
        prompt: str,
        label: str,
        sampling_params: Any,
        rollout: TokenEpisode,
        reward: Reward,
        verdict: Verdict,
        total: float | None,
        group: RewardGroup,
    ) -> dict[str, Any]:
        """What OpenRLHF makes an experience of.

        A masked episode is its prompt alone, without a range, so that no token of it enters a loss, and has the mean
        reward of the others as its own, so that it moves no baseline.
        """
        low, high = self.pipeline.reward.low, self.pipeline.reward.high
        masked = total is None
        if total is None:
            total = steady(group.mean or 0.0, self._step)
        score = share(total, low, high)
        if self.configuration.filtered and not group.varied:
            score = 0.0  # a mean of 0 is outside of (0, 1): the group teaches nothing and is drawn anew
        start = len(rollout.prompt_ids)
        logprobs = None
        if getattr(sampling_params, "logprobs", None) is not None:
            logprobs = [0.0] * start + ([] if masked else list(rollout.logprobs))
        return {
            "prompt": prompt,
            "label": label,
            "images": None,
            "mm_train_inputs": None,
            "reward": total,
            "scores": score,
            "observation_tokens": list(rollout.prompt_ids if masked else rollout.context),
            "action_ranges": [] if masked else [(start + begin, start + end) for begin, end in rollout.ranges],
            "rollout_log_probs": logprobs,
            "truncated": not masked and rollout.attempt.truncated,
            "extra_logs": self._figures(rollout, reward, verdict),
        }

    def _figures(self, rollout: TokenEpisode, reward: Reward, verdict: Verdict) -> dict[str, float]:
        """The same keys whatever happened, since OpenRLHF merges by key; 0 for what a masked episode cannot say."""
        known = rollout.masked is None and reward.total is not None
        program, trace = (rollout.attempt.program, rollout.attempt.trace) if known else (None, None)
        figures = {
            "masked": float(not known),
            "masked_cut": float(reward.masked_cut),
            # OpenRLHF's own count has no part in masked ones.
            "truncated": float(rollout.masked is None and rollout.attempt.truncated),
            "retried": float(rollout.retried),
            "parsed": float(program is not None),
            "executed": float(trace is not None and trace.executed),
            "answered": float(known and verdict.answer),
            "calls": float(len(program.calls)) if program is not None else 0.0,
            "thoughts": float(known and verdict.thought_words is not None),
            "thought_words": float(verdict.thought_words or 0) if known else 0.0,
            "turns": float(len(rollout.ranges)),
            "tokens": float(sum(rollout.mask)),
            "environment_tokens": float(len(rollout.mask) - sum(rollout.mask)),
            "observations_cut": float(rollout.observations_cut),
        }
        own = self.pipeline.reward
        for name in (*own.weights, *([TRUNCATED] if own.truncation == "floor" else ())):
            weighted = reward.scores.get(name)  # nobody loses by being cut off who was not
            figures[f"scores/{name}"] = weighted.score.value if known and weighted is not None else 0.0
        return {PREFIX + name: value for name, value in figures.items()}

    def _keep(
        self,
        row: Mapping[str, Any],
        place: int,
        rollout: TokenEpisode,
        reward: Reward,
        verdict: Verdict,
        group: RewardGroup,
    ) -> None:
        """Write what the trainer puts into ``rollouts.jsonl`` and ``evaluation.json``: all of a group at its end."""
        if row["evaluation"]:
            self.spool.write("verdicts", [asdict(verdict)], 1, row["row"])
            return
        shown: dict[str, Any] | None = None
        if place < row["logged"]:
            task = rollout.task
            shown = {
                "task": task.id,
                "depth": task.depth,
                "structure": task.structure,
                "query": task.query,
                "prompt": self._written(rollout.prompt_ids),
                "completion": rollout.attempt.completion.text,
                "truncated": rollout.attempt.truncated,
                "answered": verdict.answer,
                "failure": verdict.failure,
                "thought_words": verdict.thought_words,
                **reward.to_json(),
                "observations": observations(rollout.attempt.trace) if rollout.masked is None else None,
                "stop": rollout.stop,
                "turns": self._turns(rollout),
            }
        group.kept.append(shown)
        if len(group.kept) == group.copies:
            filtered = self.configuration.filtered and not group.varied  # and drawn anew: not one of the step's samples
            kept = [one for one in group.kept if one is not None]
            self.spool.write("rollouts", kept, 0 if filtered else group.copies, row["row"])

    def _turns(self, rollout: TokenEpisode) -> list[dict[str, Any]]:
        response, ranges = rollout.response_ids, rollout.ranges
        following = [*(start for start, _ in ranges[1:]), len(response)][: len(ranges)]
        return [
            {
                "completion": turn.completion.text,
                "calls": len(turn.calls),
                "tokens": end - start,
                "observation": self._written(response[end:after]),
                **({} if turn.user is None else {"user": turn.user.to_json()}),
            }
            for turn, (start, end), after in zip(rollout.attempt.turns, ranges, following, strict=True)
        ]

    def _written(self, ids: Sequence[int]) -> str:
        codec: Any = self._codec
        return str(codec.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


class _Asking:
    """OpenRLHF's engine as what :func:`callwright.episodes.driving.drive_one` asks."""

    def __init__(self, engine: Any, sampling_params: Any, ends: frozenset[int], max_length: int) -> None:
        self._engine, self._params = engine, sampling_params
        self._ends, self._max_length = ends, max_length

    async def __call__(self, context: tuple[int, ...], room: int | None) -> EngineOutput:
        left = self._max_length - len(context)
        params = deepcopy(self._params)  # shared by all completions of a prompt
        params.max_tokens = left if room is None else min(room, left)
        params.stop_token_ids = sorted(self._ends)
        answer = await self._engine.generate(list(context), params)
        output = answer.outputs[0]
        if output.finish_reason not in ("stop", "length"):
            raise InfrastructureFailure(f"the engine ended a completion with {output.finish_reason!r}")
        ids = tuple(int(token) for token in output.token_ids)
        logprobs: tuple[float, ...] = ()
        if getattr(params, "logprobs", None) is not None and output.logprobs is not None:
            logprobs = tuple(float(given[token].logprob) for token, given in zip(ids, output.logprobs, strict=True))
        return EngineOutput(ids, logprobs, output.finish_reason == "stop")


def reward_function(config: str | Path) -> Callable[..., dict[str, Any]]:
    """A reward function for OpenRLHF's own single-turn executor.

    It is given texts, from which the completion is cut out. One without an end token at its end was cut off by the
    limit; where the tokenizer has no text for an end token, nobody can know. Nothing can be masked: an episode whose
    machinery fails more often than it is retried ends the run. OpenRLHF swallows what such a function raises and
    would go on without a reward, so the trainer reads of it in ``failure.json`` and ends the run.
    """
    agent = Agent(config)
    pipeline, retries = agent.pipeline, agent.configuration.retries
    low, high = pipeline.reward.low, pipeline.reward.high
    ends = [end for end in agent.end_texts if end]

    def score(prompt: str, query: str, label: str) -> tuple[float, float, dict[str, float]]:
        row = read_label(label)
        task = agent._task(row)
        if not query.startswith(prompt):
            raise DataError(f"the query of task {task.id!r} does not begin with its prompt: OpenRLHF cut the prompt")
        text = query[len(prompt) :]
        whole = next((text.removesuffix(end) for end in ends if text.endswith(end)), None)
        completion = Completion(text, truncated=bool(ends)) if whole is None else Completion(whole)
        progress = read_progress(agent.folder, agent.configuration.steps)
        ((attempt, reward),) = asked_again(
            pipeline.scoring([pipeline.attempt(task, completion, progress)]), retries, pipeline.scoring
        )
        if reward.total is None:
            raise RunError(
                f"the machinery failed for task {task.id!r}, and a reward function cannot mask: {reward.masked}"
            )
        verdict = judge(attempt)
        if row["evaluation"]:
            agent.spool.write("verdicts", [asdict(verdict)], 1, row["row"])
        figures = {
            PREFIX + "answered": float(verdict.answer),
            PREFIX + "parsed": float(attempt.program is not None),
            PREFIX + "thoughts": float(verdict.thought_words is not None),
            PREFIX + "thought_words": float(verdict.thought_words or 0),
        }
        figures[PREFIX + "truncated"] = float(attempt.truncated)
        if pipeline.reward.truncation == "floor":
            figures[f"{PREFIX}scores/{TRUNCATED}"] = 0.0  # the same keys for all, and no loss for what ended
        for name, weighted in reward.scores.items():
            figures[f"{PREFIX}scores/{name}"] = weighted.score.value
        total = steady(reward.total, agent._step)
        return total, share(total, low, high), figures

    def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_: Any) -> dict[str, Any]:
        with _Recording(agent.folder):
            ((total, portion, figures),) = [
                score(prompt, query, label) for prompt, query, label in zip(prompts, queries, labels, strict=True)
            ]
        return {"rewards": total, "scores": portion, "extra_logs": figures}

    return reward_func


def read_label(label: str) -> dict[str, Any]:
    """The label of an exported row. Raises :class:`callwright.errors.DataError` for anything else."""
    try:
        row = json.loads(label)
        row = {key: row[key] for key in ("task", "split", "row", "copies", "logged", "evaluation", "prompt")}
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{label!r:.80} is not a label that this trainer exported") from error
    return row


def read_progress(folder: Path, steps: int) -> Progress:
    """How far training is, as far as the trainer has read OpenRLHF's log."""
    try:
        done = int(json.loads((folder / "progress.json").read_bytes())["step"])
    except (OSError, ValueError, KeyError, TypeError):
        done = 0
    return Progress(done, steps)


def read_start(folder: Path) -> str:
    """The name of the start of OpenRLHF that goes on when an engine begins; empty if the trainer wrote none."""
    try:
        return str(json.loads((folder / "progress.json").read_bytes())["start"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


class _Recording:
    """Writes why an episode ended the run, where the trainer looks for it, and raises it as what every process knows.

    Ray sends exceptions from process to process; ours may have classes that the other one has not.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None or not isinstance(error, Exception):
            return
        said = {
            "error": type(error).__name__,
            "message": str(error),
            "traceback": "".join(traceback.format_exception(error)),
            "process": f"{socket.gethostname()}:{os.getpid()}",
            "time": time.time(),
        }
        try:
            write_atomically(self._folder / "failure.json", json.dumps(said, indent=2) + "\n")
        except Exception as second:  # a full disk must not hide the first error
            error.add_note(f"and it could not be written down: {second}")
        raise RuntimeError(f"Callwright ends this run: {type(error).__name__}: {error}") from error
