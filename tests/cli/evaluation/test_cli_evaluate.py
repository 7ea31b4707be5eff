"""``callwright evaluate``: accuracy, intervals, and going on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from click.testing import Result

import callwright as cw
from callwright.cli.evaluation_tables import draw_accuracies
from callwright.commands.file_formats import schema_of
from callwright.plugins import load_plugins
from callwright.training.evaluation import Plan

Invoke = Callable[..., Result]
SUMS = ("--corpus", "sums-v1")


def test_gold_is_right_everywhere(invoke: Invoke) -> None:
    result = invoke("evaluate", *SUMS, "--sampler", "gold", "--json")
    found = json.loads(result.stdout)
    assert found["overall"] == 1.0
    assert {depth: (cell["accuracy"], cell["n"]) for depth, cell in found["by_depth"].items()} == {
        "0": (1.0, 4),
        "1": (1.0, 4),
        "2": (1.0, 4),
    }
    assert set(found["by_structure"]) == {"none", "single", "linear"}
    assert found["failures"] == {}
    low, high = found["by_depth"]["0"]["low"], found["by_depth"]["0"]["high"]
    assert 0.5 < low < 0.52
    assert high == 1.0


def test_the_result_fits_its_schema(invoke: Invoke) -> None:
    import jsonschema_rs

    found = json.loads(invoke("evaluate", *SUMS, "--sampler", "no-call", "--json").stdout)
    jsonschema_rs.validator_for(schema_of("result")).validate(found)
    assert found["overall"] == pytest.approx(1 / 3)
    assert found["failures"]["1"] == {"answer:abstained": 4}


def test_a_table_for_people(invoke: Invoke) -> None:
    result = invoke("evaluate", *SUMS, "--sampler", "gold", "--split", "train", "--limit", "5")
    assert result.exit_code == 0
    assert "gold on sums-v1, train" in result.stdout
    assert "depth 2" in result.stdout
    assert "100.0%" in result.stdout


@pytest.mark.parametrize("columns", ["80", "60", "200"])
def test_neither_figures_nor_codes_are_parted_in_the_middle(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    cell = {"accuracy": 1.0, "n": 40, "low": 0.912, "high": 1.0, "valid_accuracy": 1.0}
    result = {
        "by_depth": {"3": cell},
        "by_structure": {"conjunctive": cell},
        "by": {"kind": {"parameter_missing": cell}},
        "failures": {"3": {"schema:unexpected_parameter": 11, "execution:unknown_cuisine": 3, "answer:wrong": 1}},
        "masked": 0,
        "headline": True,
        "all": cell,
    }
    draw_accuracies(result, "a title", remedy="")
    shown = capsys.readouterr().out
    for whole in ("parameter_missing", "100.0% [91, 100]", "11 schema:unexpected_parameter", "unknown_cuisine"):
        assert whole in shown
    assert "answer:wrong" not in shown
    assert max(map(len, shown.splitlines())) <= int(columns)


def test_a_recipe_names_corpus_form_and_sampler(invoke: Invoke, recipe: Path) -> None:
    recipe.write_text(recipe.read_text() + '\n[sampler]\nname = "noisy-gold"\np = 0.0\n')
    found = json.loads(invoke("evaluate", "--recipe", recipe, "--json").stdout)
    assert found["overall"] == pytest.approx(1 / 3)
    found = json.loads(invoke("evaluate", "--recipe", recipe, "--sampler-option", "p=1.0", "--json").stdout)
    assert found["overall"] == 1.0
    found = json.loads(invoke("evaluate", "--recipe", recipe, "--set", "sampler=gold", "--json").stdout)
    assert found["overall"] == 1.0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "name one thing to evaluate on: --recipe RECIPE, --corpus NAME"),
        ((*SUMS, "--recipe", "x"), 2, "name one thing to evaluate on: --recipe RECIPE, --corpus NAME"),
        (SUMS, 2, "name what makes the completions: --sampler NAME"),
        ((*SUMS, "--sampler", "golt"), 2, "error: There is no sampler named 'golt'. Did you mean 'gold'?"),
        ((*SUMS, "--sampler", "gold", "--split", "test"), 2, "no split 'test'; choose one with --split: train, valid"),
        ((*SUMS, "--sampler", "gold", "--sampler-option", "p"), 2, "--sampler-option p: expected KEY=VALUE"),
        ((*SUMS, "--sampler", "gold", "--sampler-option", "q=1"), 2, "There is no option of the sampler 'gold' named"),
        ((*SUMS, "--sampler", "noisy-gold", "--sampler-option", "p=2"), 2, "less than or equal to 1, not 2"),
        ((*SUMS, "--sampler", "gold", "--shots", "2"), 2, "error: corpus 'sums-v1' offers no examples for prompts"),
        ((*SUMS, "--sampler", "gold", "--shots", "-1"), 2, "-1 is not in the range x>=0"),
        ((*SUMS, "--sampler", "gold", "--set", "a=1"), 2, "--set and --unset go with --recipe"),
        (("--recipe", "x", "--ir", "json"), 2, "use --set with a recipe"),
        (("--recipe", "no-such-recipe", "--sampler", "gold"), 2, "error: no-such-recipe: there is no such file."),
    ],
)
def test_requests_that_cannot_be_met(invoke: Invoke, words: tuple[str, ...], status: int, said: str) -> None:
    result = invoke("evaluate", *words)
    assert result.exit_code == status
    assert said in result.stderr
    assert result.stdout == ""


def evaluation(folder: Path) -> tuple[str, ...]:
    return (
        "evaluate",
        *SUMS,
        "--sampler",
        "noisy-gold",
        "--sampler-option",
        "p=0.5",
        "--batch",
        "5",
        "-o",
        str(folder),
    )


def test_an_evaluation_that_was_stopped_ends_in_the_same_bytes(invoke: Invoke, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    invoke(*evaluation(whole))
    lines = (whole / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 12
    for kept in range(13):
        for torn in (b"", b'{"id": "to'):
            broken.mkdir(exist_ok=True)
            (broken / "settings.json").write_bytes((whole / "settings.json").read_bytes())
            (broken / "verdicts.jsonl").write_bytes(b"".join(lines[:kept]) + torn)
            (broken / "evaluation.json").unlink(missing_ok=True)
            result = invoke(*evaluation(broken))
            assert result.exit_code == 0, result.stderr
            for name in ("verdicts.jsonl", "evaluation.json", "settings.json"):
                assert (broken / name).read_bytes() == (whole / name).read_bytes()
            assert json.loads((broken / "manifest.json").read_bytes())["tasks"] == 12
            if kept >= 5:
                assert f"going on after {kept if kept == 12 else kept // 5 * 5} of 12 tasks" in result.stderr


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("answer", 5, "'answer' is a number, expected true or false"),
        ("depth", "1", "'depth' is text, expected a whole number"),
        ("task", None, "'task' is null"),
    ],
)
def test_an_edited_verdict_is_named_with_its_line(
    invoke: Invoke, tmp_path: Path, key: str, value: Any, said: str
) -> None:
    words = ("evaluate", "--corpus", "sums-v1", "--sampler", "gold", "-o", tmp_path / "e")
    assert invoke(*words).exit_code == 0
    path = tmp_path / "e" / "verdicts.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[2][key] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "e" / "verdicts.jsonl.sha256").unlink()  # which would have said it first
    result = invoke(*words)
    assert result.exit_code == 2
    assert f"verdicts.jsonl:3: {said}" in result.stderr


def test_what_was_done_is_not_sampled_again(invoke: Invoke, registry: cw.Registry, tmp_path: Path) -> None:
    asked: list[str] = []
    gold = registry.create("sampler", "gold")

    class Counting:
        name = "counting"

        def sample(self, requests: list[cw.SamplingRequest], **options: object) -> list[list[cw.Completion]]:
            if len(asked) == 4:
                raise KeyboardInterrupt
            asked.extend(request.task.id for request in requests)
            return gold.sample(requests)

    def samplers() -> list[cw.Lazy]:
        return [cw.Lazy("counting", Counting)]

    registry.add(SimpleNamespace(callwright_samplers=cw.hookimpl(samplers)), name="counting")
    words = ("evaluate", *SUMS, "--sampler", "counting", "--batch", "4", "-o", str(tmp_path / "e"))
    stopped = invoke(*words)
    assert stopped.exit_code == 130
    assert stopped.stderr.endswith(f"stopped; nothing in {tmp_path / 'e'} is lost; the same command goes on\n")
    asked.append("between")
    assert invoke(*words).exit_code == 0
    assert asked.pop(4) == "between"
    assert asked == [f"validation-{index}" for index in range(12)]


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_a_temperature_is_a_finite_number_from_0(value: str, invoke: Invoke, tmp_path: Path) -> None:
    result = invoke(*evaluation(tmp_path / "e"), f"--temperature={value}")
    assert result.exit_code == 2
    assert "'--temperature'" in result.stderr
    with pytest.raises(cw.UsageError, match="a temperature is a number from 0"):
        Plan(temperature=float(value))


def test_a_folder_of_another_evaluation_is_left_alone(invoke: Invoke, tmp_path: Path) -> None:
    invoke(*evaluation(tmp_path / "e"))
    before = {path.name: path.read_bytes() for path in (tmp_path / "e").iterdir()}
    result = invoke(*evaluation(tmp_path / "e"), "--seed", "5")
    assert result.exit_code == 2
    assert "holds an evaluation with other settings (seed)" in result.stderr
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "thesis.tex").write_text("precious")
    result = invoke(*evaluation(tmp_path / "f"))
    assert result.exit_code == 2
    assert "is not empty and holds no evaluation" in result.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "e").iterdir()} == before


def test_verdicts_fit_their_schema_and_can_be_scored(invoke: Invoke, tmp_path: Path) -> None:
    import jsonschema_rs

    invoke(*evaluation(tmp_path / "e"))
    verdicts = tmp_path / "e" / "verdicts.jsonl"
    rows = [json.loads(line) for line in verdicts.read_text().splitlines()]
    validator = jsonschema_rs.validator_for(schema_of("verdicts"))
    for row in rows:
        validator.validate(row)
    scored = invoke("score", verdicts, "--corpus", "sums-v1", "--recipe", "sums", "-o", "-")
    totals = [json.loads(line)["total"] for line in scored.stdout.splitlines()]
    assert [total == 1.0 for total in totals] == [row["answer"] for row in rows]


@pytest.fixture
def heard(registry: cw.Registry) -> list[cw.SamplingRequest]:
    """What a sampler ``listening`` was asked, on a corpus ``shown-sums-v1`` that draws shots."""
    from cli_fakes import Sums

    asked: list[cw.SamplingRequest] = []
    gold = registry.create("sampler", "gold")

    class Shown(Sums):
        name = "shown-sums-v1"

        def shots(self, task: cw.Task, count: int) -> list[cw.Task]:
            return [other for other in self["train"] if other.structure == task.structure][:count]

    class Listening:
        name = "listening"

        def sample(self, requests: list[cw.SamplingRequest], **options: object) -> list[list[cw.Completion]]:
            asked.extend(requests)
            found: list[list[cw.Completion]] = gold.sample(requests)
            return found

    plugin = SimpleNamespace(
        callwright_corpora=cw.hookimpl(lambda: [cw.Lazy("shown-sums-v1", Shown)]),
        callwright_samplers=cw.hookimpl(lambda: [cw.Lazy("listening", Listening)]),
    )
    registry.add(plugin, name="shown")
    return asked


SHOWN = ("evaluate", "--corpus", "shown-sums-v1", "--sampler", "listening")


def test_shots_are_in_every_prompt(invoke: Invoke, registry: cw.Registry, heard: list[cw.SamplingRequest]) -> None:
    plain = json.loads(invoke(*SHOWN, "--json").stdout)
    assert [len(request.messages) for request in heard] == [2] * 12
    without = list(heard)
    heard.clear()
    assert json.loads(invoke(*SHOWN, "--shots", "3", "--json").stdout) == plain
    corpus, parser = registry.create("corpus", "shown-sums-v1"), registry.create("parser", "json")
    for request, bare in zip(heard, without, strict=True):
        assert [message.role for message in request.messages] == ["system", *["user", "assistant"] * 3, "user"]
        assert (request.messages[0], request.messages[-1]) == bare.messages
        shots = corpus.shots(request.task, 3)
        assert [message.content for message in request.messages[1:-1:2]] == [shot.query for shot in shots]
        assert [parser.parse(message.content) for message in request.messages[2::2]] == [s.program for s in shots]


def test_an_evaluation_with_other_shots_is_another_one(
    invoke: Invoke, heard: list[cw.SamplingRequest], tmp_path: Path
) -> None:
    folder = tmp_path / "e"
    assert invoke(*SHOWN, "--shots", "2", "-o", folder).exit_code == 0
    assert json.loads((folder / "settings.json").read_text())["shots"] == 2
    result = invoke(*SHOWN, "--shots", "1", "-o", folder)
    assert result.exit_code == 2
    assert "holds an evaluation with other settings (shots)" in result.stderr
    assert invoke(*SHOWN, "--shots", "2", "-o", folder).exit_code == 0
    assert len(heard) == 12
    refused = tmp_path / "refused"
    assert invoke("evaluate", *SUMS, "--sampler", "gold", "--shots", "2", "-o", refused).exit_code == 2
    assert not refused.exists()


@pytest.mark.parametrize("sampler", ["gold", "noisy-gold"])
def test_tasks_that_a_sampler_cannot_answer_are_refused_before_there_is_a_folder(
    invoke: Invoke, registry: cw.Registry, tmp_path: Path, sampler: str
) -> None:
    from cli_fakes import Sums

    class Bare(Sums):
        name = "bare-sums-v1"

        def __getitem__(self, split: str) -> list[cw.Task]:
            return [evolve(task, program=None) if task.depth else task for task in super().__getitem__(split)]

    registry.add(SimpleNamespace(callwright_corpora=cw.hookimpl(lambda: [cw.Lazy("bare-sums-v1", Bare)])), name="bare")
    out = tmp_path / "e"
    done = invoke("evaluate", "--corpus", "bare-sums-v1", "--sampler", sampler, "-o", out)
    assert (done.exit_code, out.exists()) == (2, False)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: 8 of 12 tasks have no reference program, which the sampler {sampler!r} writes")
    assert invoke("evaluate", "--corpus", "bare-sums-v1", "--sampler", "no-call", "-o", out).exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "call 1: its arguments refer to an earlier result, for which this form has no notation"),
        (("--turns", "2"), "it takes 3 turns, and there are 2"),
    ],
)
def test_references_that_a_form_cannot_write_in_these_turns_are_refused_before_there_is_a_folder(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    out, plugins = tmp_path / "e", load_plugins()
    asked = ("evaluate", "--corpus", "toolworld-mini-v1", "--sampler", "gold", "--ir", "toolrl", "--limit", "30")
    done = invoke(*asked, *words, "-o", out, plugins=plugins)
    assert (done.exit_code, out.exists()) == (2, False)
    (line,) = done.stderr.splitlines()
    assert "of 30 tasks have a reference program that the form 'toolrl' cannot write here" in line
    assert said in line
    (turns,) = re.findall(r"--turns (\d+)", line)
    assert json.loads(invoke(*asked, "--turns", turns, "--json", plugins=plugins).stdout)["overall"] == 1.0


def test_an_evaluation_has_a_report(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "an evaluation"
    result = invoke(*evaluation(folder))
    assert result.stdout.endswith(f"report: callwright report '{folder}'\n")
    assert invoke("report", folder).stdout == f"{folder / 'report.html'}\n"
    page = (folder / "report.html").read_text()
    assert "noisy-gold on sums-v1, validation" in page
    shown = json.loads((folder / "evaluation.json").read_text())
    headline = "Between" if shown["masked"] else f"of {shown['n']} tasks were answered rightly"
    assert headline in page
    assert "What is twice 2 plus 1?" in page
    assert invoke(*evaluation(folder)).exit_code == 0, "the page does not stop an evaluation from going on"
    assert "report:" not in invoke(*evaluation(folder), "--json").stdout


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_workers_give_the_same_evaluation(invoke: Invoke, tmp_path: Path, executor: str) -> None:
    words = ("evaluate", *SUMS, "--sampler", "noisy-gold", "--sampler-option", "p=0.5", "--batch", "2", "--json", "-o")
    alone = invoke(*words, tmp_path / "alone")
    several = invoke(*words, tmp_path / "several", "--workers", "2", "--executor", executor)
    assert (several.exit_code, several.stdout) == (0, alone.stdout)
    assert (tmp_path / "several/verdicts.jsonl").read_bytes() == (tmp_path / "alone/verdicts.jsonl").read_bytes()


def test_failures_that_no_tool_declares_are_counted_and_survive_a_stop(
    invoke: Invoke, tmp_path: Path, registry: cw.Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = registry.create("corpus", "sums-v1")
    broken = cw.Program((cw.Call(0, "stumble", {"x": 1}),))
    for task in corpus["validation"][::2]:
        object.__setattr__(task, "program", broken)  # what the sampler "gold" writes
    command = ("evaluate", *SUMS, "--sampler", "gold", "--batch", "5", "--json")
    whole = invoke(*command, "-o", tmp_path / "whole")
    found = json.loads(whole.stdout)["undeclared"]["stumble"]
    assert (found["calls"], found["failures"], found["alarming"]) == (6, 6, True)
    assert "alarm: tools raise" in " ".join(invoke(*command[:-1]).stdout.split())
    stopped = tmp_path / "stopped"
    invoke(*command, "-o", stopped)
    rows = (stopped / "verdicts.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (stopped / "verdicts.jsonl").write_text("".join(rows[:5]), encoding="utf-8")
    (stopped / "evaluation.json").unlink()
    invoke(*command, "-o", stopped)
    for name in ("verdicts.jsonl", "evaluation.json"):
        assert (stopped / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
