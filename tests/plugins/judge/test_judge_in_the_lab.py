"""The lab says beside a judge's scores whether they agree with execution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")
from stand_in_server import Asked, StandIn, chat

RUBRIC = """about = "x"
sees = ["answer", "reference"]
[criteria.right]
asks = "Is it right?"
"""


def lab(*words: str) -> Any:
    return CliRunner().invoke(root, ["lab", *words], obj=App(registry=cw.default_registry()))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Right, wrong and failing programs, and one text that is none."""
    corpus, form = cw.corpus("toolworld-mini-v1"), cw.parser("json")
    tasks = [task for task in corpus["evaluation"][:30] if task.program is not None and task.program.calls]
    noisy = cw.sampler("noisy-gold", p=0.0)
    found = []
    for number, task in enumerate(tasks[:8]):
        assert task.program is not None
        ((spoiled,),) = noisy.sample([cw.SamplingRequest((cw.Message.user("x"),), task)])
        other = cw.Program((), "one")
        for text in (form.render(task.program), spoiled.text, form.render(other), "nothing"):
            found.append({"id": len(found), "task": task.id, "completion": text, "group": number})
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in found))
    return file


def test_verdicts_stand_beside_execution(rows: Path, tmp_path: Path) -> None:
    def truly(asked: Asked) -> Any:
        wanted = asked.body["response_format"]["json_schema"]["schema"]["properties"]
        said = asked.last.partition("returned by the calls: ")[2].partition("\n")[0]
        points = 5 if f"expected: {said}" in asked.last else 2
        criteria = {"right": {"reason": "So.", "score": points}}
        return chat(json.dumps({"word": wanted["word"]["enum"][0], "criteria": criteria}))

    rubric = tmp_path / "small.toml"
    rubric.write_text(RUBRIC)
    page = tmp_path / "lab.html"
    with StandIn(truly) as server:
        given = {"model": "m", "base_url": server.url, "rubric": str(rubric), "cache": str(tmp_path / "kept.sqlite")}
        options = [word for key, value in given.items() for word in ("--recipe-option", f"tier-judged.{key}={value!r}")]
        common = (str(rows), "--corpus", "toolworld-mini-v1", "--recipes", "tier,tier-judged", "--probe-tasks", "0")
        done = lab(*common, *options, "--json")
        assert done.exit_code == 0, done.output
        drawn = lab(*common, *options, "-o", str(page))
    found = json.loads(done.stdout)["recipes"]
    assert "judged" not in found["tier"]
    judged = found["tier-judged"]["judged"]["judge"]
    assert judged["right"] == 8
    assert judged["n"] < 32, "the judge is asked about what executed alone"
    assert (judged["auc"], judged["kappa"], judged["accuracy"], judged["threshold"]) == (1, 1, 1, 0.5)
    assert "verdicts beside execution" in drawn.output
    assert "Verdicts beside execution" in page.read_text()


def test_options_go_to_the_recipe_that_they_name(rows: Path) -> None:
    common = (str(rows), "--corpus", "toolworld-mini-v1", "--recipes", "tier,tier-judged")
    assert "Did you mean 'tier-judged'" in lab(*common, "--recipe-option", "tier-juged.model=m").output
    assert "expected RECIPE.OPTION=VALUE" in lab(*common, "--recipe-option", "model=m").output
    done = lab(*common, "--probe-tasks", "0")
    assert done.exit_code == 0
    assert "tier-judged is left out: the judge needs a 'model'" in done.output


def test_score_gives_the_judge_its_options_and_keeps_no_secret(rows: Path, tmp_path: Path) -> None:
    def four(asked: Asked) -> Any:
        wanted = asked.body["response_format"]["json_schema"]["schema"]["properties"]
        criteria = {name: {"reason": "So.", "score": 4} for name in wanted["criteria"]["properties"]}
        return chat(json.dumps({"word": wanted["word"]["enum"][0], "criteria": criteria}))

    out = tmp_path / "out.jsonl"
    with StandIn(four, latency=(0.02, 0.02)) as server:
        url = server.url.replace("http://", "http://someone:hidden-word@")
        given = {"model": "m", "base_url": url, "server": "{ concurrency = 8 }"}
        options = [word for key, value in given.items() for word in ("--recipe-option", f"{key}={value}")]
        command = ["score", str(rows), "--corpus", "toolworld-mini-v1", "--recipe", "judge", "-o", str(out)]
        done = CliRunner().invoke(root, [*command, *options], obj=App(registry=cw.default_registry()))
        assert done.exit_code == 0, done.output
        assert len(server.asked) == 32
        assert server.most > 1
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["total"] for row in found} == {0.75}
    assert all("hidden-word" not in path.read_text() for path in tmp_path.iterdir())
    assert "--recipe-option" in CliRunner().invoke(root, ["rescore", "--help"]).output


def test_what_a_judge_takes_is_said_and_kept_whoever_scores(rows: Path, tmp_path: Path) -> None:
    def four(asked: Asked) -> Any:
        wanted = asked.body["response_format"]["json_schema"]["schema"]["properties"]
        criteria = {name: {"reason": "So.", "score": 4} for name in wanted["criteria"]["properties"]}
        return chat(json.dumps({"word": wanted["word"]["enum"][0], "criteria": criteria}))

    def options(**given: str) -> list[str]:
        return [word for key, value in given.items() for word in ("--recipe-option", f"{key}={value}")]

    def score(*more: str) -> dict[str, Any]:
        command = ["score", str(rows), "--corpus", "toolworld-mini-v1", "--recipe", "judge", "--json", *more]
        done = CliRunner().invoke(root, command, obj=App(registry=cw.default_registry()))
        assert done.exit_code == 0, done.output
        if "-o" in more:
            assert "; asked: 32 requests, " in done.stderr
        return dict(json.loads(done.stdout))

    with StandIn(four) as server:
        given = {"model": "m", "base_url": server.url, "server": "{ price_prompt = 2.0, price_completion = 4.0 }"}
        usage = score(*options(**given))["usage"]
        assert usage["requests"] == len(server.asked) == 32
        assert usage["cost"] == pytest.approx((2 * usage["prompt_tokens"] + 4 * usage["completion_tokens"]) / 1e6)
        assert usage["cost"] > 0
        output = ("-o", str(tmp_path / "out.jsonl"))
        assert score(*options(**given), *output, "--workers", "2", "--executor", "process")["usage"] == usage
        assert score(*options(**given), *output)["usage"] == usage  # of the finished file: nobody is asked again
        assert len(server.asked) == 64
        cache = str(tmp_path / "kept.sqlite")
        equal = score(*options(**given, cache=cache))["usage"]["requests"]
        assert equal == len(server.asked) - 64
        assert "usage" not in score(*options(**given, cache=cache))
        common = (str(rows), "--corpus", "toolworld-mini-v1", "--recipes", "tier,judge", "--probe-tasks", "0")
        named = [word if word.startswith("--") else f"judge.{word}" for word in options(**given)]
        told = json.loads(lab(*common, *named, "--json").stdout)["usage"]
        assert told == usage
