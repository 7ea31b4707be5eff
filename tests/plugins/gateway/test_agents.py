"""Agents as processes: evaluated like any sampler, watched, and killed with what they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from scripted_engine import SCRIPT, TASK, ScriptedEngine, block

import callwright as cw
from callwright.walk import ListedCorpus
from callwright.walk.limits import ONE_TURN, TurnLimits
from callwright_plugins.gateway.agent_sampler import AgentSampler

pytest.importorskip("openai", reason="needs OpenAI's client: pip install 'callwright[openai]'")
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'callwright[gateway]'")

AGENT = str(Path(__file__).parent / "support" / "plain_agent.py")


class Corpus:
    """One task."""

    name = "one-v1"
    environment = TASK.environment
    splits = {"test": 1}  # noqa: RUF012

    def __getitem__(self, split: str) -> list[cw.Task]:
        return [TASK]

    def task(self, task_id: str) -> cw.Task:
        return TASK


def evaluated(script: list[str], *words: str, turns: int = 10, **options: Any) -> tuple[Any, Any]:
    """The verdict on the agent, and its attempt."""
    pipeline = cw.Pipeline(
        Corpus(), "tier", "hermes", conditions=cw.Conditions(limits=TurnLimits(assistant_turns=turns))
    )
    sampler = AgentSampler([sys.executable, AGENT, *words], engine=ScriptedEngine(script), **options)
    kept: list[Any] = []
    (verdict,) = cw.evaluate(pipeline, [TASK], sampler, keep=lambda attempt, _: kept.append(attempt))
    return verdict, kept[0]


@pytest.mark.parametrize("words", [(), ("stream",)], ids=["whole", "streamed"])
def test_an_agent_is_evaluated_like_any_sampler(words: tuple[str, ...]) -> None:
    """Entering a and then b returns 1 and 2; the task's answer is what the last turn with calls returned."""
    verdict, attempt = evaluated([block("a"), block("b"), "Both are in."], *words)
    assert verdict.answer
    assert [turn.completion.text for turn in attempt.turns] == [block("a"), block("b"), "Both are in."]
    assert cw.reward("tier").score_attempt(attempt).total == 1.0
    verdict, attempt = evaluated(SCRIPT, *words)
    assert not verdict.answer
    assert attempt.masked is None


def test_an_agent_that_dies_or_hangs_masks_its_sample() -> None:
    _, attempt = evaluated(SCRIPT, "dies")
    assert attempt.masked == "the agent ended with status 1: no such luck"
    begun = time.monotonic()
    _, attempt = evaluated(SCRIPT, "hangs", time_limit=1.0)
    assert attempt.masked == "the agent did not end within 1 seconds"
    assert time.monotonic() - begun < 20


def test_a_model_that_goes_on_for_ever_is_not_masked() -> None:
    """The gateway refuses the answer after the last; that the agent dies of it is the model's doing."""
    _, attempt = evaluated([block("a")] * 9, turns=3)
    assert attempt.masked is None
    assert len(attempt.turns) == 3


def test_a_task_of_one_turn_is_asked_once_and_others_beside_it_are_not() -> None:
    """Whichever comes first among those that are evaluated together."""
    once = evolve(TASK, id="once", facts={ONE_TURN: True})
    conditions = cw.Conditions(limits=TurnLimits(assistant_turns=10))
    pipeline = cw.Pipeline(ListedCorpus("two", [once, TASK]), "tier", "hermes", conditions=conditions)
    bare = str(Path(__file__).parent / "support" / "bare_agent.py")
    sampler = AgentSampler([sys.executable, bare], engine=ScriptedEngine([block("a"), block("b"), "Both are in."]))
    kept: list[Any] = []
    for tasks in ([once, TASK], [TASK, once]):
        cw.evaluate(pipeline, tasks, sampler, keep=lambda attempt, _: kept.append(attempt))
        assert {one.task.id: len(one.turns) for one in kept} == {"once": 1, TASK.id: 3}
        kept.clear()


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(cw.UsageError, match="command is empty"):
        AgentSampler("", engine=ScriptedEngine(SCRIPT))
    with pytest.raises(cw.UsageError, match="cannot be read"):
        AgentSampler("python 'a", engine=ScriptedEngine(SCRIPT))
    with pytest.raises(cw.UsageError, match="keeps no token ids"):
        cw.Gateway(object())
    with pytest.raises(cw.UsageError, match=r"not its name: callwright\.sampler\('local-model', …\)"):
        cw.Gateway("local-model")
    pipeline = cw.Pipeline(Corpus(), "tier", "hermes")
    with pytest.raises(cw.UsageError, match="'no-such-agent' cannot be started"):
        cw.evaluate(pipeline, [TASK], AgentSampler("no-such-agent", engine=ScriptedEngine(SCRIPT)))


PARENT = """
import sys
sys.path.append({support!r})
from scripted_engine import SCRIPT, TASK, ScriptedEngine
import asyncio
from callwright.episodes import Gateway
from callwright_plugins.gateway.agent_process import run_agent

async def work():
    async with Gateway(ScriptedEngine(SCRIPT)).serve() as gateway:
        print("ready", flush=True)
        await run_agent([sys.executable, "-c", {child!r}], gateway.open(TASK), time_limit=60, given={{}})

asyncio.run(work())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a process dies with its parent on Linux alone")
def test_an_agent_dies_with_its_parent(tmp_path: Path) -> None:
    sign = tmp_path / "pid"
    child = f"import os, time; open({str(sign)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    support = str(Path(__file__).parents[2] / "core" / "episodes" / "gateway" / "support")
    code = PARENT.format(support=support, child=child)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 20
        while not (sign.exists() and sign.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        agent = int(sign.read_text())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _lives(agent):
        time.sleep(0.02)
    assert not _lives(agent)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
