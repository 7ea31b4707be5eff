"""``callwright synthesize``: what it prints, refuses and leaves, and the commands that plugins add to it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import command_table, root
from callwright.commands.app import App
from callwright.errors import UsageError
from callwright.plugins import Lazy
from callwright.training import Made, Materials, Rejected, Unit
from callwright.training.synthesis.work import SynthesisRequest

RECIPE = """
name = "prices"

[synthesis]
synthesizer = "sample-prices"
environments = ["sample-shop"]
count = 12
"""
PLUGIN = ("-p", "callwright.testing.synthesis.shop")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.toml").write_text(RECIPE)
    return tmp_path


def run(*words: str, app: App | None = None) -> Any:
    return CliRunner().invoke(root, [*PLUGIN, *words], obj=app or App())


def test_it_says_what_became_of_units(here: Path) -> None:
    done = run("synthesize", "prices.toml")
    assert done.exit_code == 0, done.output
    folder = here / "synthesized" / "prices"
    yields = json.loads((folder / "manifest.json").read_text())["yields"]
    first, *others, last = done.stdout.splitlines()
    assert first == f"24 units, {yields['accepted']} accepted, {yields['kept']} kept"
    assert yields["kept"] < 12
    assert last == f"{yields['kept']} tasks in synthesized/prices/tasks.jsonl; 12 were asked for"
    assert f"  duplicates: asked before: {yields['rejected']['duplicates']['asked before']}" in others
    again = run("synthesize", "prices.toml", "--json")
    assert json.loads(again.stdout)["yields"] == yields
    assert "is finished" in again.stderr


def test_what_it_wrote_is_a_file_of_tasks(here: Path) -> None:
    assert run("synthesize", "-o", "out", "--set", "synthesis.file=t.jsonl.gz", "prices.toml").exit_code == 0
    done = run("tasks", "check", "out/t.jsonl.gz")
    assert (done.exit_code, "tasks hold" in done.stdout) == (0, True), done.output


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("none.toml",), 2, "there is no such file"),
        (("prices.toml", "--workers", "2", "--executor", "serial"), 2, "2 workers need an executor"),
        (("prices.toml", "--max-cost", "1"), 2, "the recipe names none"),
        (("prices.toml", "--replay"), 2, "the recipe names none"),
        (("prices.toml", "--set", "synthesis.teacher=scripted", "--replay"), 2, "there are no replies to take from"),
        (("prices.toml", "--set", "synthesis.sed=1"), 2, "Did you mean 'seed'"),
        (("prices.toml", "--set", "synthesis.synthesizer=sample-price"), 2, "Did you mean 'sample-prices'"),
        (("tier-mini",), 2, "callwright run takes it"),
    ],
)
def test_what_cannot_be_is_refused_before_a_folder_is_made(
    here: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    done = run("synthesize", *words)
    assert (done.exit_code, said in done.stderr) == (status, True), done.output
    assert [path.name for path in here.iterdir()] == ["prices.toml"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"sample-shop"]', '"sample-shp"]', "prices.toml:6: There is no environment named 'sample-shp'"),
        ('"sample-prices"', '"sample-price"', "prices.toml:5: There is no synthesizer named 'sample-price'"),
        (
            'synthesizer = "sample-prices"\n',
            'synthesizer.name = "grounded"\nsynthesizer.calls = -1\n',
            "prices.toml:6: the option 'calls' of the synthesizer 'grounded' is a number from 1, not -1",
        ),
    ],
)
def test_a_component_that_cannot_be_made_is_told_with_file_and_line(here: Path, old: str, new: str, said: str) -> None:
    (here / "prices.toml").write_text(RECIPE.replace(old, new))
    done = run("synthesize", "prices.toml")
    assert (done.exit_code, said in done.stderr) == (2, True), done.output


@pytest.mark.parametrize("words", [("prices.toml", "--cout", "3"), ("prices.toml", "--executor", "proces"), ("--x",)])
def test_the_word_is_not_told_twice_where_usage_is(here: Path, words: tuple[str, ...]) -> None:
    done = run("synthesize", *words)
    assert done.exit_code == 2
    assert " synthesize [OPTIONS] RECIPE\n" in done.stderr
    assert "synthesize synthesize" not in done.stderr


class _Stopping:
    """A synthesizer that is stopped at a stage, as Ctrl-C does."""

    name = "stopping"

    def __init__(self, stage: str = "plan") -> None:
        self.stage = stage

    def plan(self, materials: Materials) -> list[Unit]:
        if self.stage == "plan":
            raise KeyboardInterrupt
        if self.stage == "mistake":
            raise UsageError("the cache cannot be written")
        return [Unit("u-0", 0, 0, {})]

    def make(self, unit: Unit, materials: Materials) -> Rejected:
        if self.stage == "make":
            raise KeyboardInterrupt
        return Rejected("mine", "nothing is made")

    def compare(self, made: Sequence[Made]) -> list[None]:
        return [None for _ in made]


class _Stops:
    @staticmethod
    @cw.hookimpl
    def callwright_synthesis_finished(folder: Path) -> None:
        if json.loads((folder / "settings.json").read_text())["synthesizer"]["stage"] == "page":
            raise KeyboardInterrupt

    @staticmethod
    @cw.hookimpl
    def callwright_synthesizers() -> list[Lazy]:
        return [Lazy("stopping", _Stopping, summary="is stopped")]  # type: ignore[arg-type]


def stopped(stage: str, folder: str = "out") -> Any:
    import callwright.testing.synthesis.shop as shop

    app = App()
    app.registry.add(shop, name="shop")
    app.registry.add(_Stops(), name="stops")
    how = ("--set", f'synthesis.synthesizer={{name = "stopping", stage = "{stage}"}}')
    return CliRunner().invoke(root, ["synthesize", "prices.toml", "-o", folder, *how], obj=app)


def test_what_is_said_of_a_stop_is_what_happens_next(here: Path) -> None:
    planning = stopped("plan")
    assert planning.exit_code == 130
    assert "stopped before the plan was made: the same command begins planning anew" in planning.stderr
    assert "is lost" not in planning.stderr
    for stage in ("make", "page"):
        later = stopped(stage, f"{stage}-out")
        assert later.exit_code == 130
        assert f"stopped; nothing in {stage}-out is lost; the same command goes on" in later.stderr


def test_a_stop_while_components_are_made_is_told_as_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SynthesisRequest, "open", stop)
    done = run("synthesize", "prices.toml")
    assert (done.exit_code, "stopped before the plan was made" in done.stderr) == (130, True)
    assert [path.name for path in here.iterdir()] == ["prices.toml"]


def test_a_mistake_that_planning_finds_leaves_no_folder(here: Path) -> None:
    refused = stopped("mistake")
    assert (refused.exit_code, "the cache cannot be written" in refused.stderr) == (2, True)
    assert not (here / "out").exists()
    (here / "out").mkdir()
    assert stopped("mistake").exit_code == 2
    assert list((here / "out").iterdir()) == []  # it was there


def test_a_recipe_that_starts_programs_is_asked_about(here: Path) -> None:
    text = RECIPE.replace('["sample-shop"]', '["sample-shop", { name = "mcp", command = ["touch", "x"] }]')
    (here / "foreign.toml").write_text(text)
    done = run("synthesize", "foreign.toml")
    assert done.exit_code == 2
    assert "foreign.toml:6" in done.stderr
    assert "touch x" in done.stderr
    assert not (here / "x").exists()


class Plugin:
    """Adds a command to ``synthesize``."""

    @staticmethod
    @cw.hookimpl
    def callwright_commands() -> list[Lazy]:
        command = click.Command("map", callback=lambda: click.echo("a map"), help="Draw it.")
        return [Lazy("synthesize map", command, summary="draw it")]  # type: ignore[arg-type]


def test_plugins_add_commands_to_it(here: Path) -> None:
    def app() -> App:
        made = App()
        made.registry.add(Plugin(), name="graphs")
        return made

    assert "synthesize map" in command_table(app())
    assert CliRunner().invoke(root, ["synthesize", "map"], obj=app()).stdout == "a map\n"
    told = CliRunner().invoke(root, ["synthesize", "--help"], obj=app()).stdout
    assert "RECIPE" in told
    assert "--max-cost" in told
    assert re.search(r"map +draw it", told)
    for words in (["prices.toml", "-o", "a"], ["-o", "b", "prices.toml"], ["--json", "prices.toml"]):
        made = app()
        import callwright.testing.synthesis.shop as shop

        made.registry.add(shop, name="shop")
        done = CliRunner().invoke(root, ["synthesize", *words], obj=made)
        assert done.exit_code == 0, done.output
    assert CliRunner().invoke(root, ["synthesize", "nothing"], obj=app()).exit_code == 2
