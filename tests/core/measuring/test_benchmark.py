"""Benchmarks: judgements, tables by hand, answers in every form, and the two that are shipped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import CannotExpress, DataError, UnknownName, UsageError
from callwright.measuring.benchmark import (
    Benchmark,
    CorpusBenchmark,
    Judged,
    Judgement,
    attempt_of,
    named_version,
    verdict_by,
)
from callwright.plugins import load_plugins


class Small(CorpusBenchmark):
    """The small world as a benchmark whose official scorer is content with the first call."""

    name = "small"
    versions = ("2", "1")
    unofficial = ("the weather is made up",)

    def __init__(self, version: str | None = None) -> None:
        super().__init__(cw.corpus("toolworld-mini-v1"), "evaluation", version)

    def category_of(self, task: cw.Task) -> str:
        return task.structure

    def judge(self, task: cw.Task, attempt: cw.Attempt) -> Judgement:
        if attempt.program is None or task.program is None:
            return Judgement(correct=False, score=0.0, error="ast_decoder:failed")
        made, wanted = ([call.tool for call in one.calls][:1] for one in (attempt.program, task.program))
        return Judgement(made == wanted, float(made == wanted), "" if made == wanted else "wrong_func", {"n": 1.0})


class Together(Small):
    """The same, which judges many attempts at once."""

    name = "together"
    sizes: ClassVar[list[int]] = []

    def judge_together(self, attempts: Sequence[tuple[cw.Task, cw.Attempt]]) -> list[Judgement]:
        self.sizes.append(len(attempts))
        return [self.judge(task, attempt) for task, attempt in attempts]


@pytest.fixture(scope="module")
def app() -> App:
    registered = [cw.Lazy("small", Small), cw.Lazy("together", Together)]
    plugin = SimpleNamespace(callwright_benchmarks=cw.hookimpl(lambda: registered))
    return App(registry=load_plugins(extra={"small": plugin}))


def invoke(app: App, *words: str | Path) -> Result:
    return CliRunner().invoke(root, [str(word) for word in words], obj=app, catch_exceptions=False)


def test_tables_by_hand() -> None:
    right, wrong, lost = Judgement(True, 1.0), Judgement(False, 0.0, "x"), Judgement(False, 0.0, masked="gone")
    judged = [
        Judged("a", "depth 1", right, 0),
        Judged("a", "depth 1", wrong, 1),
        Judged("b", "depth 1", right),
        Judged("c", "depth 2", lost),
        Judged("d", "depth 2", wrong),
    ]
    found = cw.default_registry().create("benchmark", "depthbench-v1").aggregate(judged)
    assert found["overall"] == pytest.approx((0.5 + 1 + 0) / 3, abs=1e-12)
    assert (found["depth 1"], found["depth 2"], found["depth 3"]) == (0.75, 0.0, None)


def test_a_judgement_is_kept_and_read_again() -> None:
    for one in (
        Judgement(True, 1.0),
        Judgement(False, 0.25, "type_error:simple", {"partial": 0.25}, ("call 1: wrong type",)),
        Judgement(False, 0.0, masked="the scorer died"),
    ):
        assert Judgement.from_json(json.loads(json.dumps(one.to_json()))) == one
    with pytest.raises(DataError, match="no judgement"):
        Judgement.from_json({"correct": "yes", "score": 1})


def test_versions_are_never_mixed() -> None:
    assert Small().version == "2"
    assert Small("1").version == "1"
    with pytest.raises(UsageError, match="small has no version '3'; there are: 2, 1"):
        Small("3")
    assert [named_version(text) for text in ("a", "a:v3")] == [("a", None), ("a", "v3")]
    for text in ("", ":v3", "a:"):
        with pytest.raises(UsageError, match="names no benchmark"):
            named_version(text)


def test_what_is_measured_is_what_the_benchmark_says(app: App, tmp_path: Path) -> None:
    words = ("evaluate", "--benchmark", "small", "--sampler", "random-valid", "--json", "-o", tmp_path / "e")
    found = json.loads(invoke(app, *words).stdout)
    rows = [json.loads(line) for line in (tmp_path / "e/verdicts.jsonl").read_text().splitlines()]
    assert found["benchmark"] == {
        "name": "small",
        "version": "2",
        "official": False,
        "why": ["the weather is made up"],
    }
    right = [row for row in rows if row["judgement"]["correct"]]
    assert right
    assert found["values"]["overall"] == found["overall"] == pytest.approx(len(right) / len(rows))
    for category, value in found["values"].items():
        some = [row["judgement"]["correct"] for row in rows if row["groups"]["category"] == category]
        assert category == "overall" or value == pytest.approx(sum(some) / len(some))
    assert {row["error"] for row in rows if not row["answer"]} == {"wrong_func"}
    assert json.loads((tmp_path / "e/settings.json").read_text())["benchmark"] == "small:2"
    other = invoke(app, "evaluate", "--benchmark", "small:1", *words[3:])
    assert "other settings (benchmark" in other.stderr
    resumed = (tmp_path / "e/verdicts.jsonl").read_bytes()
    (tmp_path / "e/verdicts.jsonl").write_bytes(b"".join(resumed.splitlines(keepends=True)[:70]))
    (tmp_path / "e/verdicts.jsonl.sha256").unlink()
    again = invoke(app, *words)
    assert (json.loads(again.stdout), (tmp_path / "e/verdicts.jsonl").read_bytes()) == (found, resumed)
    compared = json.loads(invoke(app, "compare", tmp_path / "e", "--json").stdout)
    assert list(compared["benchmarks"]) == ["small:2"]
    assert compared["unofficial"] == ["small:2 is not official: the weather is made up"]
    invoke(app, "report", tmp_path / "e")
    page = (tmp_path / "e/report.html").read_text()
    assert "Not official: the weather is made up." in page
    assert "As the benchmark adds it up" in page


def test_answers_are_judged_without_a_model(app: App, tmp_path: Path) -> None:
    made, parser = Small(), cw.parser("json")
    task = next(task for task in made.tasks("single") if task.program is not None)
    assert task.program is not None
    call = task.program.calls[0]
    function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments))}
    rows = [
        {"id": task.id, "completion": parser.render(task.program), "valid": False, "kind": "gold"},
        {"id": task.id, "completion": "nonsense"},
        {
            "id": task.id,
            "messages": [
                {"role": "user", "content": task.query},
                {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]},
            ],
        },
        {"id": task.id, "completion": [parser.render(task.program), "done"]},
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("benchmark", "judge", "small:2", tmp_path / "answers.jsonl", "--overwrite", "-o", tmp_path / "out.jsonl")
    result = invoke(app, *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [
        {"id": task.id, "kind": "gold", "valid": True, "error_type": None},
        {"id": task.id, "kind": "completion", "valid": False, "error_type": "ast_decoder:failed"},
        {"id": task.id, "kind": "messages", "valid": True, "error_type": None},
        {"id": task.id, "kind": "completion", "valid": False, "error_type": "ast_decoder:failed"},
    ]
    assert json.loads(result.stdout)["errors"] == {"ast_decoder:failed": 2}
    for bad, said in (
        ({"id": task.id[:-1]}, "has no task"),
        ({"id": task.id}, "the row holds no answer"),
        ({"id": task.id, "completion": 5}, "'completion' is no text"),
        ({"id": task.id, "messages": [{"role": 1}]}, "answers.jsonl:1: "),
    ):
        (tmp_path / "answers.jsonl").write_text(json.dumps(bad) + "\n")
        refused = invoke(app, *words)
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr
    assert invoke(app, *words[:-1], tmp_path / "answers.jsonl").exit_code == 2


def test_a_benchmark_that_judges_together_is_given_many_answers_in_their_order(app: App, tmp_path: Path) -> None:
    parser, tasks = cw.parser("json"), [task for task in Small().tasks("single") if task.program is not None]
    rows = []
    for at in range(130):
        task = tasks[at % len(tasks)]
        assert task.program is not None
        rows.append({"id": task.id, "completion": parser.render(task.program) if at % 3 else f"nonsense {at}"})
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = []
    for name in ("small", "together"):
        words = ("benchmark", "judge", name, tmp_path / "answers.jsonl", "-o", tmp_path / f"{name}.jsonl", "--json")
        assert invoke(app, *words).exit_code == 0
        written.append((tmp_path / f"{name}.jsonl").read_text())
    assert written[0] == written[1]
    assert Together.sizes == [64, 64, 2]
    (tmp_path / "answers.jsonl").write_text(json.dumps(rows[0]) + "\n" + json.dumps({"id": rows[1]["id"]}) + "\n")
    refused = invoke(app, "benchmark", "judge", "together", tmp_path / "answers.jsonl", "-o", tmp_path / "o.jsonl")
    assert (refused.exit_code, "answers.jsonl:2: the row holds no answer" in refused.stderr) == (2, True)


@pytest.mark.parametrize("form", ["json", "hermes", "xml"])
def test_gold_answers_of_depthbench_are_right_as_completions(app: App, tmp_path: Path, form: str) -> None:
    made, parser = app.registry.create("benchmark", "depthbench-v1"), cw.parser(form)
    rows = []
    for task in made.tasks()[::9]:
        try:
            rows.append({"id": task.id, "completion": parser.render(task.program)})
        except CannotExpress:
            continue
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("benchmark", "judge", "depthbench-v1:1", tmp_path / "a.jsonl", "--ir", form, "-o", tmp_path / "o.jsonl")
    found = json.loads(invoke(app, *words, "--json").stdout)
    assert (found["answers"], found["values"]["overall"], found["errors"]) == (len(rows), 1.0, {})
    assert found["answers"] > 40


def test_the_released_depthbench_says_that_it_is_not_official(app: App, official_data: Path, tmp_path: Path) -> None:
    folder = official_data / "depthbench_official"
    if not folder.is_dir():
        pytest.skip("the official files are not here (CALLWRIGHT_DATA)")
    words = ("evaluate", "--benchmark", "depthbench-official", "--data", folder, "--sampler", "gold", "--json")
    found = json.loads(invoke(app, *words).stdout)
    assert (found["values"]["overall"], found["benchmark"]["official"]) == (1.0, False)
    assert len(found["benchmark"]["why"]) == 3
    shown = invoke(app, "benchmark", "show", "depthbench-official", "--data", folder, "--json")
    assert json.loads(shown.stdout)["needs"][0]["kind"] == "data"


def test_tasks_go_out_without_what_is_right(app: App, tmp_path: Path) -> None:
    words = ("benchmark", "export", "depthbench-v1", "--category", "depth 6", "-o", tmp_path / "tasks.jsonl")
    assert invoke(app, *words).stdout == f"10 tasks in {tmp_path / 'tasks.jsonl'}\n"
    rows = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert {tuple(row) for row in rows} == {("id", "category", "messages", "tools")}
    assert all(tool["type"] == "function" and tool["function"]["parameters"] for row in rows for tool in row["tools"])
    refused = invoke(app, *words[:4], "depth 9", "-o", tmp_path / "others.jsonl")
    assert (refused.exit_code, "There is no category of depthbench-v1 named 'depth 9'" in refused.stderr) == (2, True)
    (tmp_path / "tasks.jsonl").write_text("precious")
    again = invoke(app, *words)
    assert (again.exit_code, f"{tmp_path / 'tasks.jsonl'} is there already" in again.stderr) == (2, True)
    assert (tmp_path / "tasks.jsonl").read_text() == "precious"
    assert invoke(app, *words, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("evaluate", "--benchmark", "smal", "--sampler", "gold"), "Did you mean 'small'"),
        (("evaluate", "--benchmark", "small:7", "--sampler", "gold"), "small has no version '7'"),
        (("evaluate", "--benchmark", "small", "--corpus", "x", "--sampler", "gold"), "name one thing to evaluate on"),
        (("evaluate", "--benchmark", "small", "--split", "x", "--sampler", "gold"), "--split goes with"),
        (("benchmark", "show", "small", "--data", "x"), "no option of the benchmark 'small' named 'data'"),
    ],
)
def test_requests_that_cannot_be_met(app: App, words: tuple[str, ...], said: str) -> None:
    result = invoke(app, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_benchmark_is_one_by_its_members() -> None:
    assert isinstance(Small(), Benchmark)
    assert not isinstance(cw.corpus("toolworld-mini-v1"), Benchmark)
    with pytest.raises(UnknownName):
        Small().tasks("no such category")


def test_a_masked_judgement_masks_the_verdict() -> None:
    class Dead(Small):
        def judge(self, task: cw.Task, attempt: cw.Attempt) -> Judgement:
            return Judgement(correct=False, score=0.0, masked="the scorer died")

    task = Small().tasks()[0]
    verdict, judgement = verdict_by(Dead(), cw.Attempt(task, "x", cw.parser("json")))
    assert (verdict.masked, verdict.failure, judgement.masked) == (True, "masked", "the scorer died")
    assert attempt_of({"id": task.id}, task, cw.parser("json")) is None


def test_messages_that_answer_nothing_are_refused(app: App, tmp_path: Path) -> None:
    task = Small().tasks()[0]
    with pytest.raises(DataError, match="answers nothing"):
        attempt_of({"messages": [{"role": "user", "content": task.query}]}, task, cw.parser("json"))
    tasks, verdicts = tmp_path / "tasks.jsonl", tmp_path / "verdicts.jsonl"
    assert invoke(app, "benchmark", "export", "depthbench-v1", "-o", tasks).exit_code == 0
    (tmp_path / "none.jsonl").write_text("\n")
    for answers, said in ((tasks, "tasks.jsonl:1: the row is the task"), (tmp_path / "none.jsonl", "holds no answers")):
        judged = invoke(app, "benchmark", "judge", "depthbench-v1", answers, "-o", verdicts)
        assert (judged.exit_code, said in judged.stderr) == (2, True)
    assert not verdicts.exists()


def test_a_dash_is_stdout_or_refused(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = invoke(app, "benchmark", "export", "depthbench-v1", "--category", "depth 6", "-o", "-")
    assert shown.exit_code == 0
    assert all(json.loads(line)["category"] == "depth 6" for line in shown.stdout.splitlines())
    for words in (
        ("corpus", "export", "depthbench-v1", "-o", "-"),
        ("corpus", "export", "depthbench-v1", "--format", "official", "-o", "-"),
        ("tasks", "export", "depthbench-v1", "-o", "-"),
        ("benchmark", "judge", "depthbench-v1", "answers.jsonl", "-o", "-"),
    ):
        refused = invoke(app, *words)
        assert (refused.exit_code, "name one in place of '-'" in refused.stderr) == (2, True)
    assert not list(tmp_path.iterdir())


def test_right_by_the_benchmark_is_valid_where_every_call_fits_whatever_we_think_of_the_answer() -> None:
    """It was only where our own comparison of answers agreed, which benchmarks are there to overrule."""
    benchmark, parser = Small(), cw.parser("json")
    several = [(task, task.program) for task in benchmark.tasks() if task.program and len(task.program.calls) > 1]
    task, program = several[0]
    first = program.calls[0]
    assert not first.located
    for arguments, valid in ((first.arguments, True), ({**first.arguments, "no_such": 1}, False)):
        attempt = cw.Attempt(task, parser.render(cw.Program((cw.Call(0, first.tool, arguments),))), parser)
        verdict, judgement = verdict_by(benchmark, attempt)
        assert (judgement.correct, verdict.answer, verdict.valid) == (True, True, valid)


def _typed(benchmark: Small) -> Any:
    checked: Benchmark = benchmark
    return checked


class Filed(Small):
    """One whose official program writes a line for each task: id, then answer."""

    def answer_rows(self, path: Path) -> Any:
        if path.suffix != ".tsv":
            return None
        lines = path.read_text().splitlines()
        return [
            (f"{path}:{at}", dict(zip(("id", "said"), line.split("\t"), strict=True)))
            for at, line in enumerate(lines, 1)
        ]

    def answer(self, row: Any, parser: Any) -> cw.Attempt | None:
        return cw.Attempt(self.corpus.task(row["id"]), row["said"], parser) if "said" in row else None


def test_an_official_file_is_read_by_its_benchmark_and_any_other_as_rows(tmp_path: Path) -> None:
    plugin = SimpleNamespace(callwright_benchmarks=cw.hookimpl(lambda: [cw.Lazy("small", Filed)]))
    app = App(registry=load_plugins(extra={"filed": plugin}))
    parser = cw.parser("json")
    task = next(task for task in Small().tasks("single") if task.program is not None)
    assert task.program is not None
    gold = parser.render(task.program).replace("\n", " ")
    (tmp_path / "official.tsv").write_text(f"{task.id}\t{gold}\n{task.id}\tnonsense\n")
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": task.id, "completion": gold}) + "\n")
    words = ("benchmark", "judge", "small", "--overwrite", "-o", tmp_path / "out.jsonl")
    assert invoke(app, *words, tmp_path / "official.tsv").exit_code == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["kind"], row["valid"]) for row in rows] == [("official", True), ("official", False)]
    assert invoke(app, *words, tmp_path / "rows.jsonl").exit_code == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["kind"] == "completion"
    (tmp_path / "bad.tsv").write_text("nobody\tso\n")
    assert f"{tmp_path / 'bad.tsv'}:1: small:2 has no task 'nobody'" in invoke(app, *words, tmp_path / "bad.tsv").stderr
