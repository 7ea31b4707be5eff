"""The yardstick: scripted samplers get what they must."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest

import callwright as cw
import callwright_plugins.depthbench as plugin
from callwright.plugins import Registry, load_plugins
from callwright.training.evaluation import judge
from callwright.walk.attempt import Attempt
from callwright.walk.sampling import SamplingRequest
from callwright.walk.tasks import Task
from callwright_plugins.depthbench.corpus import DepthBenchCorpus

CORPUS = DepthBenchCorpus()
TASKS: list[Task] = [task for split in CORPUS.splits for task in CORPUS[split]]


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = load_plugins()
    if plugin.NAME not in registry.names("corpus"):
        registry.add(plugin, name="depthbench")
    return registry


def rights(registry: Registry, name: str, tasks: Sequence[Task], **options: object) -> list[bool]:
    sampler = registry.create("sampler", name, **options)
    parser = registry.create("parser", str(options.get("ir", "json")))
    requests = [SamplingRequest((), task) for task in tasks]
    return [
        judge(Attempt(t, found[0], parser)).answer
        for t, found in zip(tasks, sampler.sample(requests, seed=1), strict=True)
    ]


@pytest.mark.parametrize("ir", ["json", "xml"])
def test_gold_is_right_everywhere(registry: Registry, ir: str) -> None:
    assert all(rights(registry, "gold", TASKS, ir=ir))


def test_no_call_is_right_at_depth_zero_only(registry: Registry) -> None:
    assert rights(registry, "no-call", TASKS) == [task.depth == 0 for task in TASKS]


def test_noisy_gold_degrades_with_depth_as_the_power_predicts(registry: Registry) -> None:
    """Within four standard errors of p ** k at every depth, over three draws of the sampler's seed each."""
    p = 0.8
    tasks = [task for task in TASKS if task.depth > 1] + [task for task in TASKS if task.depth == 1][::4]
    found = rights(registry, "noisy-gold", tasks, p=p)
    count = Counter(task.depth for task in tasks)
    right = Counter(task.depth for task, is_right in zip(tasks, found, strict=True) if is_right)
    for depth, number in count.items():
        expected = p**depth
        error = math.sqrt(expected * (1 - expected) / number)
        assert abs(right[depth] / number - expected) < 4 * error, (depth, right[depth], number)


def test_random_calls_are_hardly_ever_right(registry: Registry) -> None:
    """A tool without parameters has one call, so a random one may be it; others need the values of the prompt."""
    tasks = TASKS[::3]
    found = rights(registry, "random-valid", tasks)
    lucky = [task for task, is_right in zip(tasks, found, strict=True) if is_right]
    assert all(task.depth == 0 or not any(call.arguments for call in task.program.calls) for task in lucky)  # type: ignore[union-attr]


def test_the_names_are_registered(registry: Registry) -> None:
    assert registry.create("corpus", plugin.NAME).name == plugin.NAME
    assert registry.create("environment", plugin.NAME).name == plugin.NAME
    assert {"corpus export", "corpus import", "corpus build"} <= set(registry.names("command"))
    assert cw.reward("tier").name == "tier"
