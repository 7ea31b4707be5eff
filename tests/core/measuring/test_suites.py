"""Suites: the shipped ones against what their tables say themselves, and whole runs with stand-ins."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as command
from callwright.commands.app import App
from callwright.errors import MissingExtra, NameClash, RecipeError
from callwright.measuring.benchmark import CorpusBenchmark
from callwright.measuring.suites.finding import known_suites, load_suite, shipped_suites
from callwright.measuring.suites.suite import LoadedSuite, parse_suite
from callwright.measuring.suites.tables import RunState, tables_of
from callwright.measuring.templates import TEMPLATES
from callwright.plugins import load_plugins

SUITE = """title = "Two worlds"
source = "a paper of nobody"
notes = ["Nobody has printed any of this."]

[runs.easy]
benchmark = "odd:2"
shots = 1
files.data = { path = "odd", what = "the odd data" }
note = "the paper has another weather"

[runs.again]
benchmark = "odd"
ir = "xml"
temperature = 0.5
samples = 2
files.data = { path = "odd", what = "the odd data" }
sampler.noisy-gold = { p = 0.5 }

[runs.absent]
benchmark = "odd"
files.data = { path = "elsewhere", what = "the other data" }

[runs.searched]
benchmark = "odd"
asks.search = "a search"

[runs.unknown]
benchmark = "benchmark-of-nobody"

[[tables]]
title = "By weather"
columns = [
  { heading = "All", benchmark = "odd" },
  { heading = "Tasks", benchmark = "odd", value = "tasks", count = true },
  { heading = "Other", benchmark = "benchmark-of" },
]
ours = [["easy", "easy"], ["sampled", "again"], ["", "absent", "unknown", "searched"]]
printed = [["theirs", 12.5, 1.25, ""], ["others", 8, 3, 4.25]]
"""


class Shown:
    """The small world, with examples."""

    def __init__(self) -> None:
        self.inner = cw.corpus("toolworld-mini-v1")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __getitem__(self, split: str) -> Any:
        return self.inner[split]

    def shots(self, task: cw.Task, n: int) -> list[cw.Task]:
        return list(self.inner["train"])[:n]


class Odd(CorpusBenchmark):
    """The small world, with files that it does not read and a figure that is no share."""

    name = "odd"
    versions = ("2", "1")
    counts = ("tasks",)

    def __init__(self, version: str | None = None, data: str = "", search: str = "") -> None:
        super().__init__(Shown(), "evaluation", version)
        if search == "missing":
            raise MissingExtra("odd", "bfcl", "the odd searcher")

    def aggregate(self, judged: Sequence[Any]) -> dict[str, float | None]:
        return {**super().aggregate(judged), "tasks": float(len({one.task for one in judged}))}


class Stumbling:
    """``noisy-gold`` that is interrupted after some completions, as often as it is told."""

    name = "noisy-gold"
    left: int | None = None

    def __init__(self, registry: cw.Registry, ir: str = "json", **options: Any) -> None:
        self.inner = registry.create("sampler", "noisy-gold", ir=ir, **options)

    def sample(self, requests: Sequence[Any], **how: Any) -> Any:
        if Stumbling.left is not None:
            Stumbling.left -= len(requests)
            if Stumbling.left < 0:
                raise KeyboardInterrupt
        return self.inner.sample(requests, **how)


@pytest.fixture
def registry() -> cw.Registry:
    plugin = SimpleNamespace(
        callwright_benchmarks=cw.hookimpl(lambda: [cw.Lazy("odd", Odd)]),
        callwright_samplers=cw.hookimpl(lambda: [cw.Lazy("stumbling", Stumbling)]),
    )
    Stumbling.left = None
    return load_plugins(extra={"odd": plugin})


@pytest.fixture
def evaluate(registry: cw.Registry, tmp_path: Path) -> Callable[..., Result]:
    """``evaluate(…)`` of the suite above, or of another."""
    (tmp_path / "data" / "odd").mkdir(parents=True)
    (tmp_path / "two.toml").write_text(SUITE)

    def run(*words: str | Path, suite: str | Path = tmp_path / "two.toml", sampler: str = "gold") -> Result:
        given = ["evaluate", "--suite", suite, "--sampler", sampler, "--data", tmp_path / "data", *words]
        return CliRunner().invoke(command, [str(word) for word in given], obj=App(registry=registry))

    return run


# The shipped suites ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped() -> dict[str, LoadedSuite]:
    registry = cw.default_registry()
    return {name: load_suite(name, registry) for name in shipped_suites()}


def printed(loaded: LoadedSuite, template: str, table: int = 0) -> dict[str, list[float]]:
    found = [one for one in loaded.suite.tables if one.template == template][table]
    return {str(name): [float(value) for value in values if value != ""] for name, *values in found.printed}


def test_the_three_papers_have_suites(shipped: dict[str, LoadedSuite]) -> None:
    assert sorted(shipped) == ["prove", "tier", "toolrl"]


@pytest.mark.parametrize("name", ["prove", "tier", "toolrl"])
def test_every_table_of_the_paper_that_has_a_template_is_there(name: str, shipped: dict[str, LoadedSuite]) -> None:
    used = {table.template for table in shipped[name].suite.tables}
    assert used == {template for template in TEMPLATES if template.startswith(f"{name}-")}
    assert all(table.ours and table.printed for table in shipped[name].suite.tables)


@pytest.mark.parametrize("name", ["prove", "tier", "toolrl"])
def test_a_suite_names_benchmarks_and_forms_that_are_here(name: str, shipped: dict[str, LoadedSuite]) -> None:
    registry = cw.default_registry()
    for run in shipped[name].suite.runs.values():
        called, _, version = run.benchmark.partition(":")
        if called in registry.names("benchmark") or not called.startswith("tau2-"):  # a plugin that may be missing
            versions = getattr(registry.spec("benchmark", called).load(), "versions", ())
            assert not version or isinstance(versions, property) or version in versions
        assert run.ir in registry.names("parser")
        assert set(run.sampler) <= set(registry.names("sampler"))


def test_tiers_printed_depths_come_to_its_printed_overall(shipped: dict[str, LoadedSuite]) -> None:
    """Its own models: the mean over depths, weighed by the 766 validation tasks (a transposed digit would not be)."""
    sizes = (51, 480, 95, 75, 45, 10, 10)
    rows = printed(shipped["tier"], "tier-1") | printed(shipped["tier"], "tier-2")
    for name in ("ToolRL RL", "TIER (ours) RL", "Format + Correctness (Simple)", "+ Parsing (no Execution)"):
        overall, *depths = rows[name]
        mean = sum(size * depth for size, depth in zip(sizes, depths, strict=True)) / sum(sizes)
        assert overall == pytest.approx(mean, abs=0.3), name


def test_toolrls_printed_levels_come_to_their_printed_overall(shipped: dict[str, LoadedSuite]) -> None:
    rows = [*printed(shipped["toolrl"], "toolrl-2").items(), *printed(shipped["toolrl"], "toolrl-2", 1).items()]
    assert len(rows) == 28 + 20
    off = set()
    for name, (overall, *levels) in rows:
        mean = sum(size * level for size, level in zip((399, 67, 131), levels, strict=True)) / 597
        if overall != pytest.approx(mean, abs=0.02):
            off.add((name, overall, round(mean, 2)))
    assert off == {  # as the paper prints them
        ("Llama-3.2-3B-Instruct (SFT400+GRPO)", 56.78, 56.74),
        ("Qwen2.5-7B-Instruct (SFT4k+PPO)", 59.3, 59.08),
    }


def test_proves_printed_parts_come_to_their_printed_means(shipped: dict[str, LoadedSuite]) -> None:
    main, teval = printed(shipped["prove"], "prove-3"), printed(shipped["prove"], "prove-4")
    assert len(main) == len(teval) == 8
    for values in main.values():
        assert values[4] == pytest.approx(sum(values[:4]) / 4, abs=0.08)
        assert values[8] == pytest.approx(sum(values[5:8]) / 3, abs=0.08)
    for values in teval.values():
        assert values[6] == pytest.approx(sum(values[:6]) / 6, abs=0.08)
    for table in ("prove-5", "prove-6", "prove-7"):  # what stands twice is the same
        for name, values in printed(shipped["prove"], table).items():
            if name in main:
                assert values == [main[name][4], main[name][8], teval[name][6]], (table, name)


def test_rows_that_stand_in_several_tables_are_the_same(shipped: dict[str, LoadedSuite]) -> None:
    first = printed(shipped["toolrl"], "toolrl-1")
    assert len(first) == 28
    for table in ("toolrl-5", "toolrl-6", "toolrl-7"):
        for name, values in printed(shipped["toolrl"], table).items():
            if "(Original)" in name:
                assert values == first[name.replace("(Original)", "(Ours, GRPO Cold Start)")]
    repeated = printed(shipped["toolrl"], "toolrl-1", 1)
    assert sum(name in first for name in repeated) == 12
    assert all(first[name] == values for name, values in repeated.items() if name in first)


@pytest.mark.parametrize("name", ["tier", "toolrl", "prove"])
def test_a_shipped_suite_runs_over_what_is_here(
    name: str, official_data: Path, registry: cw.Registry, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    places = {"nestful": "nestful/v2", "api-bank": "apibank/toolrl_processed", "bfcl-v3": "bfcl/v3_git"}
    for link, place in {**places, "bamboogle": "bamboogle"}.items():
        if (official_data / place).is_dir():
            (data / link).symlink_to(official_data / place)
    words = ["evaluate", "--suite", name, "--sampler", "no-call", "--limit", "5", "--data", data, "--json"]
    found = CliRunner().invoke(command, list(map(str, words)), obj=App(registry=registry))
    assert found.exit_code == 0, found.output
    made = json.loads(found.stdout)
    states = {run["name"]: run["state"] for run in made["runs"]}
    assert set(states.values()) <= {"not official", "not measured"}
    measured = {run["benchmark"].partition(":")[0] for run in made["runs"] if run["state"] == "not official"}
    wanted = {"tier": "nestful", "toolrl": "api-bank"}.get(name)
    assert wanted is None or wanted in measured or not (data / wanted).exists()
    missing = [run for run in made["runs"] if run["state"] == "not measured"]
    assert all(run["why"] and run["why"][0] for run in missing)
    if name == "toolrl":  # the search is asked for
        assert any("bamboogle.search" in run["why"][0] for run in missing)


# A suite of one's own -------------------------------------------------------------------------------------------------


def test_what_is_measured_stands_beside_what_was_printed(evaluate: Callable[..., Result]) -> None:
    found = evaluate("--json")
    assert found.exit_code == 0, found.output
    made = json.loads(found.stdout)
    (table,) = made["tables"]
    assert table["heads"] == ["", "All", "Tasks", "Other"]
    rows = [(row["name"], row["cells"], row["printed"]) for row in table["rows"]]
    size = f"{len(cw.corpus('toolworld-mini-v1')['evaluation']):.2f}"
    assert rows == [
        ("gold, easy", ["100.00", size, "–"], False),
        ("gold, sampled", ["100.00", size, "–"], False),
        ("gold", ["–", "–", "–"], False),
        ("theirs", ["12.50", "1.25", "–"], True),
        ("others", ["8.00", "3.00", "4.25"], True),
    ]
    assert table["notes"] == [
        "easy is official",
        "again is official",
        "absent is not measured",
        "unknown is not measured",
        "searched is not measured",
    ]
    why = {run["name"]: " ".join(run["why"]) for run in made["runs"]}
    assert why["easy"] == ""
    assert "elsewhere is not there. Needed is the other data" in why["absent"]
    assert "--benchmark-option absent.data=PATH" in why["absent"]
    assert why["searched"] == "it needs a search: --benchmark-option searched.search=…"
    assert why["unknown"] == "no benchmark named 'benchmark-of-nobody' is installed"


def test_options_reach_the_run_that_they_name(evaluate: Callable[..., Result], tmp_path: Path) -> None:
    given = ("--benchmark-option", f"absent.data={tmp_path}", "--benchmark-option", "searched.search=missing")
    found = evaluate("--json", "--limit", "3", *given)
    states = {run["name"]: (run["state"], run["why"]) for run in json.loads(found.stdout)["runs"]}
    whole = len(cw.corpus("toolworld-mini-v1")["evaluation"])
    assert states["absent"][0] == "not official"
    assert states["absent"][1][0].startswith(f"3 of {whole} tasks were answered and judged; none of depth")
    assert states["searched"][0] == "not measured"
    assert "callwright[bfcl]" in states["searched"][1][0]
    wrong = evaluate("--benchmark-option", "abssent.data=x")
    assert wrong.exit_code == 2
    assert "Did you mean 'absent'" in wrong.stderr
    assert "with a suite it is RUN.KEY=VALUE" in evaluate("--benchmark-option", "data=x").stderr


def test_settings_are_those_of_each_run(evaluate: Callable[..., Result], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert evaluate("--limit", "4", "-o", out, sampler="noisy-gold").exit_code == 0
    settings = {name: json.loads((out / name / "settings.json").read_text()) for name in ("easy", "again")}
    assert (settings["easy"]["shots"], settings["easy"]["benchmark"], settings["easy"]["ir"]) == (1, "odd:2", "json")
    assert (settings["again"]["samples"], settings["again"]["temperature"]) == (2, 0.5)
    assert settings["again"]["sampler"]["p"] == 0.5  # the suite's, for this sampler alone
    assert "p" not in settings["easy"]["sampler"]
    again = tmp_path / "given"
    assert evaluate("--limit", "4", "-o", again, "--sampler-option", "p=1.0", sampler="noisy-gold").exit_code == 0
    assert json.loads((again / "again" / "settings.json").read_text())["sampler"]["p"] == 1.0


def test_a_suite_that_was_stopped_ends_in_the_same_bytes(evaluate: Callable[..., Result], tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    words = ("--limit", "20", "--batch", "4", "--sampler-option", "p=0.7")
    assert evaluate(*words, "-o", whole, sampler="stumbling").exit_code == 0
    for left in (0, 7, 13, 9):
        Stumbling.left = left
        one = evaluate(*words, "-o", stopped, sampler="stumbling")
        assert one.exit_code == 130, one.output
        assert "the same command goes on" in one.stderr
    Stumbling.left = None
    assert evaluate(*words, "-o", stopped, sampler="stumbling").exit_code == 0
    names = ["tables.json", "tables.md", "tables.html", "suite.json"]
    names += [f"{run}/{file}" for run in ("easy", "again") for file in ("verdicts.jsonl", "evaluation.json")]
    for name in names:
        assert (whole / name).read_bytes() == (stopped / name).read_bytes(), name


def test_what_is_downloaded_later_is_measured_then(evaluate: Callable[..., Result], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert evaluate("--limit", "3", "-o", out).exit_code == 0
    ledger = json.loads((out / "suite.json").read_text())
    assert {name: run["state"] for name, run in ledger["runs"].items()}["absent"] == "not measured"
    taken = (out / "easy" / "seconds.jsonl").read_bytes()
    (tmp_path / "data" / "elsewhere").mkdir()
    assert evaluate("--limit", "3", "-o", out).exit_code == 0
    assert json.loads((out / "suite.json").read_text())["runs"]["absent"]["state"] == "not official"
    assert (out / "easy" / "seconds.jsonl").read_bytes() == taken  # what stood there was not measured again


def test_a_folder_of_another_suite_is_refused(evaluate: Callable[..., Result], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert evaluate("--limit", "3", "-o", out).exit_code == 0
    other = evaluate("--limit", "4", "-o", out)
    assert other.exit_code == 2
    assert "other settings (limit)" in other.stderr
    (tmp_path / "two.toml").write_text(SUITE.replace("12.5", "13.5"))
    assert "other settings (sha256)" in evaluate("--limit", "3", "-o", out).stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    assert "holds no suite" in evaluate("-o", tmp_path / "full").stderr


def test_a_run_of_which_most_is_masked_has_no_figures_in_a_table(shipped: dict[str, LoadedSuite]) -> None:
    suite = shipped["tier"].suite
    states = [RunState(name, run.benchmark, "json", True) for name, run in suite.runs.items()]
    name = next(one for table in suite.tables for ours in table.ours for one in ours.runs if "nestful" in one)
    values = {"overall": 1.0, "win": 1.0, "full": 1.0, "em": 1.0}
    told = {"values": values, "by_depth": {}, "by_structure": {}, "n": 1, "masked": 39, "headline": False}
    made = tables_of(suite, {name: told}, states, "ours")
    cells = [cell for table in made.tables for row in table.rows if not row.printed for cell in row.cells]
    assert {*cells} == {"–"}
    assert any(f"{name} has no figures: 39 of its 40 answers are masked" in table.notes for table in made.tables)


def test_pages_say_what_is_printed_and_load_nothing(evaluate: Callable[..., Result], tmp_path: Path) -> None:
    text = SUITE.replace('"theirs"', '"<b>theirs|</b>"').replace("Two worlds", "Two <i>worlds</i>")
    (tmp_path / "two.toml").write_text(text)
    out = tmp_path / "out"
    assert evaluate("--limit", "3", "-o", out).exit_code == 0
    page, marks = (out / "tables.html").read_text(), (out / "tables.md").read_text()
    assert "<b>" not in page
    assert "&lt;b&gt;theirs|&lt;/b&gt;" in page
    assert "http" not in page
    assert "src=" not in page
    assert "| &lt;b>theirs\\|&lt;/b> | 12.50 | 1.25 | – |" in marks
    assert "no benchmark named 'benchmark-of-nobody' is installed" in page
    assert "no benchmark named 'benchmark-of-nobody' is installed" in marks
    assert "the paper has another weather" in page


@pytest.mark.parametrize(
    "words", [("--shots", "3"), ("--temperature", "1"), ("--benchmark", "odd"), ("--ir", "xml"), ("--package", "x")]
)
def test_what_the_suite_says_is_not_said_twice(words: tuple[str, str], evaluate: Callable[..., Result]) -> None:
    found = evaluate(*words)
    assert found.exit_code == 2
    assert f"{words[0]}: a suite says what is measured" in found.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("shots = 1", "shot = 1", r"two\.toml:7: .*Did you mean 'shots'"),
        ('["theirs", 12.5, 1.25, ""]', '["theirs", 12.5, 1.25]', r"two\.toml:\d+: .*has 3 cells"),
        ('["theirs", 12.5, 1.25, ""]', '["theirs", 12.5, 1.25, "x"]', r"two\.toml:\d+: .*'' stands for none"),
        ('["easy", "easy"]', '["easy", "eazy"]', r"taken from the run 'eazy'; there are: easy"),
        ("[runs.easy]", '[runs."../easy"]', r"'\.\./easy' has other characters"),
        ("temperature = 0.5", "temperature = -1", r"two\.toml:14: .*greater than or equal to 0"),
        ('title = "By weather"\n', 'template = "tier-1"\n', "either a template or columns"),
        ('title = "Two worlds"', "title = ", "not valid TOML"),
    ],
)
def test_a_mistake_in_a_suite_has_its_line(
    old: str, new: str, said: str, evaluate: Callable[..., Result], tmp_path: Path
) -> None:
    import re

    assert old in SUITE
    (tmp_path / "two.toml").write_text(SUITE.replace(old, new))
    found = evaluate()
    assert found.exit_code == 2, found.output
    assert re.search(said, found.stderr), found.stderr


def test_an_unknown_suite_has_a_near_one(evaluate: Callable[..., Result]) -> None:
    assert "Did you mean 'tier'" in evaluate(suite="teir").stderr
    assert "there is no such file" in evaluate(suite="teir.toml").stderr


def test_options_of_a_strange_file_are_asked_about(evaluate: Callable[..., Result], tmp_path: Path) -> None:
    text = SUITE.replace("[runs.unknown]", '[runs.unknown]\noptions.package = "/tmp/code"')
    (tmp_path / "two.toml").write_text(text)
    refused = evaluate("--limit", "2")
    assert refused.exit_code == 2
    assert "has the option package = '/tmp/code'" in refused.stderr
    assert "nothing was started" in refused.stderr
    assert evaluate("--limit", "2", "--yes").exit_code == 0


def test_a_plugin_ships_suites_as_files(registry: cw.Registry, tmp_path: Path, monkeypatch: Any) -> None:
    package = tmp_path / "suites_of_a_plugin"
    (package / "suites").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import callwright as cw\n\n\n@cw.hookimpl\ndef callwright_benchmarks():\n    return []\n"
    )
    (package / "suites" / "shipped-elsewhere.toml").write_text(SUITE)
    monkeypatch.syspath_prepend(tmp_path)
    import importlib

    registry.add(importlib.import_module("suites_of_a_plugin"), name="suites_of_a_plugin")
    try:
        assert known_suites(registry)["shipped-elsewhere"] == package / "suites" / "shipped-elsewhere.toml"
        assert load_suite("shipped-elsewhere", registry).suite.title == "Two worlds"
        (package / "suites" / "tier.toml").write_text(SUITE)
        with pytest.raises(NameClash, match="two suites are named 'tier'"):
            known_suites(registry)
    finally:
        del sys.modules["suites_of_a_plugin"]


def test_any_text_is_a_suite_or_a_mistake_of_its_file() -> None:
    for text in ("", "title = 1", "[runs]", 'title = "a"\nruns = 3', "a = " + "[" * 500, SUITE[: len(SUITE) // 2]):
        with pytest.raises(RecipeError):
            parse_suite(text, "some.toml")
