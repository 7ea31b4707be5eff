"""``callwright benchmark show`` before anybody has the files: which they are, where they go, where they come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.measuring.benchmark import Need, version_of

Invoke = Callable[..., Result]


class Faraway:
    """A benchmark whose files nobody has here."""

    name = "faraway"
    versions = ("2", "1")
    needs: ClassVar[Sequence[Need]] = (
        Need("data", "the questions (--data DIR)", ("a.json", "b/c.json"), "the moon"),
        Need("judge", "somebody"),
    )

    def __init__(self, data: str, version: str | None = None) -> None:
        self.version = version_of(self.name, version, self.versions)
        self.unofficial, self.categories = (f"{data} is a part",), {"easy": 3}


class Unsaid(Faraway):
    """One that says what it needs only once it is made."""

    name = "unsaid"
    needs: Any = property(lambda self: Faraway.needs)  # type: ignore[misc]


@pytest.fixture(autouse=True)
def faraway(registry: cw.Registry) -> None:
    lazies = [cw.Lazy("faraway", Faraway), cw.Lazy("unsaid", Unsaid)]
    registry.add(SimpleNamespace(callwright_benchmarks=cw.hookimpl(lambda: lazies)), name="faraway")


def test_files_and_their_origin_are_told_without_them(invoke: Invoke) -> None:
    done = invoke("benchmark", "show", "faraway")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "faraway:2 (versions: 2, 1)",
        "needs data: the questions (--data DIR)",
        "  a.json",
        "  b/c.json",
        "  from the moon",
        "needs judge: somebody",
        "give --data DIR for what the folder holds and whether results are official",
    ]
    told = json.loads(invoke("benchmark", "show", "faraway:1", "--json").stdout)
    assert (told["version"], told["versions"]) == ("1", ["2", "1"])
    files = {"kind": "data", "what": "the questions (--data DIR)", "files": ["a.json", "b/c.json"], "from": "the moon"}
    assert told["needs"] == [files, {"kind": "judge", "what": "somebody"}]


@pytest.mark.parametrize("given", [("--data", "here"), ("--benchmark-option", "data=here")])
def test_with_the_files_it_is_told_what_they_hold(invoke: Invoke, given: tuple[str, str]) -> None:
    shown = invoke("benchmark", "show", "faraway", *given).stdout
    assert "not official: here is a part" in shown
    assert "      3  easy" in shown
    assert "give --data" not in shown


def test_what_says_nothing_before_it_is_made_names_the_option(invoke: Invoke) -> None:
    done = invoke("benchmark", "show", "unsaid")
    assert done.exit_code == 2
    assert "the benchmark 'unsaid' needs the option 'data', the folder of its files: --data DIR" in done.stderr


def test_a_version_that_is_not_there_is_refused(invoke: Invoke) -> None:
    done = invoke("benchmark", "show", "faraway:9")
    assert (done.exit_code, "faraway has no version '9'; there are: 2, 1" in done.stderr) == (2, True)


def test_evaluate_says_who_knows_the_files(invoke: Invoke) -> None:
    done = invoke("evaluate", "--benchmark", "faraway", "--sampler", "gold")
    assert done.exit_code == 2
    assert "--data DIR in a command; callwright benchmark show faraway says which they are" in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "api-bank",
        "bamboogle",
        "bfcl-multi-turn",
        "bfcl-v3",
        "bfcl-v4",
        "depthbench-official",
        "nestful",
        "t-eval",
        "tau2-airline",
        "tau2-retail",
        "tau2-telecom",
        "when2call",
    ],
)
def test_every_built_in_benchmark_says_which_files_it_reads(name: str) -> None:
    done = CliRunner().invoke(root, ["benchmark", "show", name, "--json"], obj=App())
    assert done.exit_code == 0, done.output
    (need,) = (need for need in json.loads(done.stdout)["needs"] if need["kind"] == "data")
    assert need["files"]
    assert need["from"]
    assert "--data" in need["what"]
