"""A synthesis whose words a model server has: bounded in cost, replayed without a request, compared with the grammar.

The server is a stand-in on loopback that greets before it repeats what it is to word, and reads by the grammar.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import DataError
from callwright.plugins import default_registry
from callwright_plugins.synthesis.language.environments import grammar_for

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")
sys.path.append(str(Path(__file__).parents[3] / "core" / "support"))
from stand_in_server import Asked, StandIn, chat, usage

GREETING = "Good day to you, kind machine. "
RECIPE = """
name = "worded"

[synthesis]
environments = ["video_meeting"]
count = 6

[synthesis.synthesizer]
name = "grounded"
calls = 1500
cache = CACHE
several_servers = 0.0
irrelevance = 0.0
abstentions = 0.0
clarifications = 0.0
failing = 0.0
recoveries = 0.0
chains = 0.0
missing = 0.0
minimal = 0.0
"""


class Server:
    """Words and reads."""

    def __init__(self) -> None:
        self.grammar = grammar_for(cw.environment("video_meeting"), default_registry())

    def __call__(self, asked: Asked) -> Any:
        counted = usage(100, 50)
        first = str(asked.body["messages"][0]["content"])
        if first.startswith("You play a person"):
            return chat(GREETING + asked.last, counted=counted)
        if first.startswith("You are given tools and a request"):
            text = asked.last.partition("The request:\n")[2].removeprefix(GREETING)
            try:
                return chat(json.dumps(self.grammar.parse(text).to_json()), counted=counted)
            except DataError:
                return chat("I cannot read this.", counted=counted)
        return chat(asked.last.rpartition("in your own words: ")[2], counted=counted)


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("knowledge")


@pytest.fixture
def here(tmp_path: Path, knowledge: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "worded.toml").write_text(RECIPE.replace("CACHE", json.dumps(str(knowledge))))
    return tmp_path


def run(*words: Any) -> Result:
    return CliRunner().invoke(root, [*map(str, words)], obj=App())


def asking(url: str) -> list[str]:
    given = {"model": "m", "base_url": url, "price_prompt": 1000, "price_completion": 1000, "max_tokens": 60}
    pairs = [part for key, value in given.items() for part in ("--teacher-option", f"{key}={value}")]
    return ["synthesize", "worded.toml", "--yes", "--teacher", "openai", *pairs]


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("tasks.jsonl", "rejected.jsonl", "units.jsonl")}


@pytest.mark.slow
def test_a_budget_stops_it_a_higher_one_goes_on_and_a_replay_asks_nobody(here: Path) -> None:
    with StandIn(Server()) as server:
        whole = run(*asking(server.url), "-o", "whole")
        assert whole.exit_code == 0, whole.output
        needed = server.answered
        manifest = json.loads((here / "whole" / "manifest.json").read_text())
        assert manifest["usage"]["requests"] == needed > 20
        assert manifest["usage"]["cost"] == pytest.approx(0.15 * needed)  # 150 tokens at 1,000 per million
        assert manifest["yields"]["kept"] >= 5
        with StandIn(Server()) as other:
            url = other.url  # another address changes nothing: replies are kept by what was asked
            stopped = run(*asking(url), "-o", "stopped", "--max-cost", "2")
            assert stopped.exit_code != 0
            assert "stopped before more than 2 were spent" in stopped.output
            assert 0 < 0.15 * other.answered <= 2
            assert not (here / "stopped" / "manifest.json").exists()
            gone_on = run(*asking(url), "-o", "stopped", "--max-cost", "1000")
            assert gone_on.exit_code == 0, gone_on.output
            assert other.answered == needed
    tasks = cw.read_tasks(here / "stopped" / "tasks.jsonl")
    assert all(task.query.startswith(GREETING) and task.facts["teacher"] == "openai" for task in tasks)
    assert files(here / "stopped") == files(here / "whole")
    # The server is gone: whatever would ask it fails.
    replayed = run(*asking(server.url), "-o", "replayed", "--replies", "whole/replies.sqlite", "--replay")
    assert replayed.exit_code == 0, replayed.output
    assert files(here / "replayed") == files(here / "whole")


@pytest.mark.slow
def test_the_same_plans_in_other_words_are_compared(here: Path) -> None:
    assert run("synthesize", "worded.toml", "-o", "scripted").exit_code == 0
    with StandIn(Server()) as server:
        assert run(*asking(server.url), "-o", "taught").exit_code == 0
    assert (here / "scripted" / "plan.jsonl").read_bytes() == (here / "taught" / "plan.jsonl").read_bytes()
    done = run("synthesize", "compare", "scripted", "taught", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    scripted, taught = found["teachers"]
    assert (scripted["teacher"], taught["teacher"]) == ("scripted", "openai")
    assert found["shared"] >= 5
    assert (scripted["alike"], scripted["usage"]) == (1.0, {})
    assert 0 < taught["alike"] < 1
    assert taught["usage"]["requests"] == server.answered
    assert taught["words"] > scripted["words"]
    example = found["examples"][0]["said"]
    assert example[1].startswith(GREETING)
    assert not example[0].startswith(GREETING)
    shown = run("synthesize", "compare", "scripted", "taught")
    assert "openai" in shown.stdout
    other = (here / "worded.toml").read_text().replace("count = 6", "count = 5")
    (here / "other.toml").write_text(other)
    assert run("synthesize", "other.toml", "-o", "other").exit_code == 0
    refused = run("synthesize", "compare", "scripted", "other")
    assert "has other plans" in refused.output
    assert "two syntheses or more" in run("synthesize", "compare", "scripted").output
    assert "--teacher-option is for" in run("synthesize", "worded.toml", "--teacher-option", "model=m").output
