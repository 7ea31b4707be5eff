"""Conformance checks for samplers: the right number of completions, in order, the same for the same seed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from typing import Final

from callwright.episodes.sampling import ConversesConcurrently
from callwright.machines.model_server import run_to_end
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown, snapshot
from callwright.testing.pickling import elsewhere, refuses
from callwright.testing.sample import SampleForm, sample_tasks
from callwright.testing.services.registries import registry_in_use
from callwright.walk.completion import Completion
from callwright.walk.prompt import build_messages
from callwright.walk.sampling import Sampler, SamplesConcurrently, SamplingRequest
from callwright.walk.tasks import Task


def check_attributes(sampler: Sampler) -> None:
    """It has the members of :class:`callwright.Sampler` and a name."""
    expect_members(sampler, Sampler)
    expect_name(sampler)


def check_shape(sampler: Sampler, tasks: Sequence[Task] | None = None) -> None:
    """``[B][n]`` completions for any number of requests and any ``n``, and none for no requests."""
    requests = _requests(tasks)
    for count, n in ((len(requests), 1), (len(requests), 3), (1, 2), (0, 1)):
        with never_raises(f"sample() of {count} requests with n={n}"):
            found = sampler.sample(requests[:count], n=n, seed=0)
        shape = [len(row) for row in found]
        expect(
            shape == [n] * count,
            f"{count} requests with n={n} gave lists of {shape} completions; it must be one list of {n} per request",
        )


def check_completions(sampler: Sampler, tasks: Sequence[Task] | None = None) -> None:
    """A completion holds text, and token ids with as many finite log-probabilities, none above 0, or neither."""
    for temperature in (1.0, 0.0):
        for completion in _flat(sampler, tasks, n=2, temperature=temperature):
            expect(isinstance(completion, Completion), f"sample() gave {type(completion).__name__}, not a Completion")
            expect(isinstance(completion.text, str), f"the text of a completion is {type(completion.text).__name__}")
            ids, logprobs = completion.token_ids, completion.logprobs
            expect(
                len(logprobs) in (0, len(ids)),
                f"a completion has {len(ids)} token ids and {len(logprobs)} log-probabilities",
            )
            expect(
                all(math.isfinite(value) and value <= 1e-4 for value in logprobs),
                f"log-probabilities must be finite and not above 0: {shown(logprobs)}; are they logits, or of masked "
                "tokens?",
            )


def check_seed(sampler: Sampler, tasks: Sequence[Task] | None = None) -> None:
    """The same seed gives the same completions, whatever was sampled in between."""
    first = list(_flat(sampler, tasks, n=2, seed=7))
    for _ in _flat(sampler, tasks, n=1, seed=8):
        pass
    second = list(_flat(sampler, tasks, n=2, seed=7))
    for before, after in zip(first, second, strict=True):
        expect(
            before == after,
            f"the seed 7 gave {shown(before.text)} and later {shown(after.text)}: is a global random generator used?",
        )


def check_greedy(sampler: Sampler, tasks: Sequence[Task] | None = None) -> None:
    """At temperature 0 a sampler of a model is greedy: the completions of one request are the same.

    A scripted sampler has no temperature; its completions may differ, but not from one call to the next.
    """
    first = [completion.text for completion in _flat(sampler, tasks, n=2, temperature=0.0)]
    second = [completion.text for completion in _flat(sampler, tasks, n=2, temperature=0.0)]
    expect(first == second, "at temperature 0 two calls gave different completions")
    for one, other in zip(
        _flat(sampler, tasks, n=2, temperature=0.0), _flat(sampler, tasks, n=2, seed=1, temperature=0.0), strict=True
    ):
        expect(
            not one.token_ids or one.text == other.text,
            f"at temperature 0 the seed matters: {shown(one.text)} and {shown(other.text)}",
        )


def check_requests(sampler: Sampler, tasks: Sequence[Task] | None = None) -> None:
    """Requests are answered in their order, and neither they nor their tasks are changed."""
    requests = _requests(tasks)
    before = snapshot(
        [[list(request.messages), request.task.query, sorted(request.task.tools)] for request in requests]
    )
    forward = sampler.sample(requests, n=1, seed=3, temperature=0.0)
    backward = sampler.sample(requests[::-1], n=1, seed=3, temperature=0.0)
    after = snapshot([[list(request.messages), request.task.query, sorted(request.task.tools)] for request in requests])
    expect(before == after, "the requests were changed")
    for request, one, other in zip(requests, forward, reversed(backward), strict=True):
        expect(
            one[0].text == other[0].text,
            f"the request of task {request.task.id!r} was answered {shown(one[0].text)}, and {shown(other[0].text)} "
            "when the requests came in reverse: are the completions in the order of the requests?",
        )


def check_one_by_one(sampler: Sampler, tasks: Sequence[Task] | None = None) -> None:
    """One that can be asked for each request by itself, many at a time, gives what it gives for all together."""
    if not isinstance(sampler, SamplesConcurrently):
        return
    if isinstance(sampler, ConversesConcurrently) and sampler.concurrency == 0:
        return  # made as it is, it asks no server
    expect(
        type(sampler.concurrency) is int and sampler.concurrency >= 1,
        f"concurrency is {sampler.concurrency!r}; it must be a whole number, 1 or more",
    )
    requests = _requests(tasks)

    async def ask(n: int) -> list[list[Completion]]:
        async with sampler.connected() as connection:
            asked = (connection.sample_one(one, n=n, seed=9, temperature=1.0) for one in requests)
            return list(await asyncio.gather(*asked))

    for n in (1, 2):
        with never_raises(f"sample_one() of {len(requests)} requests at a time with n={n}"):
            found = run_to_end(ask(n))
        expected = sampler.sample(requests, n=n, seed=9, temperature=1.0)
        for request, alone, together in zip(requests, found, expected, strict=True):
            texts, others = ([completion.text for completion in some] for some in (alone, together))
            expect(
                texts == others,
                f"the request of task {request.task.id!r} by itself gives {shown(texts)}, and {shown(others)} with "
                "others: does what is drawn hang on the seed, the task and the turns alone?",
            )


def check_pickles_before_use(sampler: Sampler, tasks: Sequence[Task] | None = None) -> None:
    """It can be pickled as it was made, and completes the same there, or it says in words why it cannot be."""
    _expect_same(sampler, tasks)


def check_pickles_after_use(sampler: Sampler, tasks: Sequence[Task] | None = None) -> None:
    """The same after it has sampled. What it sampled can be pickled in any case."""
    for completion in _flat(sampler, tasks, n=2, seed=5):
        copy = elsewhere(completion, "a completion")
        expect(copy == completion, f"the completion {shown(completion.text)} is another one after it was pickled")
    _expect_same(sampler, tasks)


def _expect_same(sampler: Sampler, tasks: Sequence[Task] | None) -> None:
    if refuses(sampler):
        return
    copy = elsewhere(sampler, "the sampler")
    for ours, theirs in zip(_flat(sampler, tasks, n=2, seed=5), _flat(copy, tasks, n=2, seed=5), strict=True):
        expect(
            ours == theirs,
            f"another process samples {shown(theirs.text)} with the seed with which this one samples "
            f"{shown(ours.text)}",
        )


SAMPLER_CHECKS: Final = (
    check_attributes,
    check_shape,
    check_completions,
    check_seed,
    check_greedy,
    check_requests,
    check_one_by_one,
    check_pickles_before_use,
    check_pickles_after_use,
)


def _requests(tasks: Sequence[Task] | None) -> list[SamplingRequest]:
    registry = registry_in_use()
    form = registry.create("parser", "json") if "json" in registry.names("parser") else SampleForm()
    chosen = tasks if tasks is not None else sample_tasks()
    return [SamplingRequest(build_messages(task, form), task) for task in chosen]


def _flat(
    sampler: Sampler, tasks: Sequence[Task] | None, *, n: int, seed: int = 0, temperature: float = 1.0
) -> Iterator[Completion]:
    for row in sampler.sample(_requests(tasks), n=n, seed=seed, temperature=temperature):
        yield from row
