"""The kinds of components that a new plugin can have, and what is written for each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen


@frozen
class Registered:
    """A component of a kind: by which hook it is registered, what it is called, and what its factory is called."""

    hook: str
    kind: str
    attribute: str = "Zebra"
    name: str = "zebra"
    summary: str = ""


@frozen
class Kind:
    """What stands in a plugin of this kind beside the component itself.

    ``imports`` are what its tests need beside the usual, ``usage`` lines that show how it is used, ``extra`` is the
    optional dependency of Callwright that it needs. ``example`` is a file that ``usage`` names: its name and its text.
    """

    what: str
    summary: str
    registered: tuple[Registered, ...]
    usage: tuple[str, ...]
    imports: tuple[str, ...] = ()
    extra: str = ""
    example: tuple[str, str] | None = None


_TRAINER: Final = """# A short run with the trainer of this plugin: callwright run example.toml -o runs/example
name = "example"
corpus = "toolworld-mini-v1"

[trainer]
name = "zebra"
steps = 4
prompts = 8
"""
_SYNTHESIZER: Final = """# Tasks by the synthesizer of this plugin: callwright synthesize example.toml -o tasks
name = "example"

[synthesis]
synthesizer = "zebra"
environments = ["payments"]
count = 8
seed = 0
"""
_TEACHER: Final = """# Tasks whose words the teacher of this plugin finds: callwright synthesize example.toml -o tasks
# One that repeats what it is told finds none that fit, so all are rejected ("language") until it asks a model.
name = "example"

[synthesis]
environments = ["vehicle"]
count = 4
seed = 0
teacher = "zebra"

[synthesis.synthesizer]
name = "grounded"
calls = 300
gates = false
"""
_CONVERSATION: Final = (
    '{"conversations": [{"from": "human", "value": "How late is it?"}, '
    '{"from": "function_call", "value": "{\\"name\\": \\"now\\", \\"arguments\\": {}}"}, '
    '{"from": "observation", "value": "12:30"}, {"from": "gpt", "value": "It is half past twelve."}]}\n'
)


def _one(hook: str, kind: str, attribute: str = "Zebra", name: str = "zebra") -> tuple[Registered, ...]:
    return (Registered(f"callwright_{hook}", kind, attribute, name),)


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "form": Kind(
            "the form",
            "a form in which models write calls",
            _one("parsers", "parser"),
            ("callwright explain --corpus toolworld-mini-v1 --task evaluation-16 --gold --ir zebra",),
        ),
        "reward": Kind(
            "the property",
            "a reward for calls that repeat none before them",
            (
                Registered("callwright_reward_components", "reward component"),
                Registered(
                    "callwright_reward_recipes", "reward recipe", "tier_zebra", "tier-zebra", "TIER with this property"
                ),
            ),
            ("callwright explain --corpus toolworld-mini-v1 --task evaluation-16 --gold --recipe tier-zebra",),
        ),
        "toolset": Kind(
            "the tools",
            "tools that count days",
            _one("toolsets", "toolset", "TOOLS"),
            ("callwright env call calendar add_days --toolset zebra --arg day=2026-02-27 --arg days=2",),
        ),
        "environment": Kind(
            "the environment",
            "notes that are written down and finished",
            _one("environments", "environment", "make_zebra", "zebra-v1"),
            ("callwright env call zebra-v1 list_notes --arg done=false", "callwright env shell zebra-v1"),
        ),
        "algorithm": Kind(
            "the algorithm",
            "REINFORCE with the mean of the group as the baseline",
            _one("algorithms", "algorithm"),
            ("callwright run tier-mini --set algorithm=zebra",),
            ("import torch",),
            extra="train",
        ),
        "trainer": Kind(
            "the trainer",
            "a trainer that measures a sampler in steps",
            _one("trainers", "trainer"),
            ("callwright run example.toml -o runs/example",),
            (
                "from pathlib import Path",
                "from callwright.pipeline import build_pipeline",
                "from callwright.recipe_file import parse_recipe",
                "from callwright.training import Run",
            ),
            example=("example.toml", _TRAINER),
        ),
        "sampler": Kind(
            "the sampler",
            "completions that call the first tool that needs no argument",
            _one("samplers", "sampler"),
            ("callwright evaluate --corpus toolworld-mini-v1 --split evaluation --limit 20 --sampler zebra",),
            ("from callwright.walk.sampling import SamplingRequest",),
        ),
        "corpus": Kind(
            "the tasks",
            "arithmetic in one or two calls",
            _one("corpora", "corpus", name="zebra-v1"),
            ("callwright evaluate --corpus zebra-v1 --split evaluation --sampler gold",),
        ),
        "synthesizer": Kind(
            "the maker of tasks",
            "questions that one call of a read-only tool answers",
            _one("synthesizers", "synthesizer"),
            ("callwright synthesize example.toml -o tasks",),
            ("from callwright.training import Accepted, Materials, Rejected",),
            example=("example.toml", _SYNTHESIZER),
        ),
        "benchmark": Kind(
            "the benchmark",
            "whether the first call names the right tool",
            _one("benchmarks", "benchmark"),
            ("callwright evaluate --benchmark zebra --sampler gold",),
        ),
        "teacher": Kind(
            "the teacher",
            "a teacher that repeats what it is told",
            _one("teachers", "teacher"),
            ("callwright synthesize example.toml -o tasks",),
            ("from callwright.training import TeacherFailure, TeacherReply, TeacherRequest",),
            example=("example.toml", _TEACHER),
        ),
        "user": Kind(
            "the user",
            "a user who asks once whether the agent is sure",
            _one("users", "user"),
            ('cw.UserSpec("zebra", {"question": "Really?"})    # in a task, in Python',),
        ),
        "tracker": Kind(
            "the tracker",
            "the figures of a run as a CSV file",
            _one("trackers", "tracker"),
            ("callwright run tier-mini --set tracker=zebra",),
            ("from pathlib import Path", "from callwright.training import Run, Step"),
        ),
        "framework": Kind(
            "the adapter",
            "agents that take tools as Python functions",
            _one("frameworks", "framework"),
            ('log.tools("zebra")    # in Python: log = cw.Log(task)',),
        ),
        "traces": Kind(
            "the format",
            "conversations as ShareGPT has them",
            _one("log_formats", "log format"),
            ("callwright import conversations.jsonl --format zebra -o rows.jsonl",),
            ("import json", "from pathlib import Path"),
            example=("conversations.jsonl", _CONVERSATION),
        ),
        "command": Kind(
            "the command",
            "counts the tasks of a corpus by their structure",
            _one("commands", "command", "zebra_command"),
            ("callwright zebra --corpus toolworld-mini-v1",),
            ("import json", "from click.testing import CliRunner", "from callwright.commands import App"),
        ),
    }
)
