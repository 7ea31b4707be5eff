"""A synthesis in a folder: the same bytes whoever makes the units and however often it was stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import ComponentError, DataError, InfrastructureFailure, RecipeError, RunError
from callwright.machines.executors import make_executor
from callwright.plugins import Lazy, PluginSource, Registry, load_plugins
from callwright.testing.synthesis import shop
from callwright.testing.synthesis.shop import Prices
from callwright.training import Accepted, Made, Materials, Rejected, Unit
from callwright.training.reporter import SILENT
from callwright.training.synthesis.folder import MANIFEST, PLAN, REJECTED, UNITS, Synthesis
from callwright.training.synthesis.recipe import load_synthesis
from callwright.training.synthesis.work import SynthesisRequest

RECIPE: dict[str, Any] = {
    "name": "prices",
    "synthesis": {"synthesizer": "sample-prices", "environments": ["sample-shop"], "count": 15, "seed": 3},
}
#: What a synthesis leaves. Nothing of it hangs on how it was made.
FILES = (PLAN, UNITS, UNITS + ".sha256", REJECTED, MANIFEST, "tasks.jsonl", "settings.json", "ledger.json")


def registry_of(*plugins: Any) -> Registry:
    registry = load_plugins()
    registry.add(shop, name="shop")
    for number, plugin in enumerate(plugins):
        registry.add(plugin, name=f"plugin-{number}")
    return registry


def synthesis(folder: Path, registry: Registry | None = None, **options: Any) -> Synthesis:
    kind, workers = options.pop("executor", "serial"), options.pop("workers", 1)
    recipe = {**RECIPE, "synthesis": {**RECIPE["synthesis"], **options.pop("table", {})}}
    known = registry or registry_of()
    source = known.description() if kind in ("process", "ray") else PluginSource(None)
    asked = SynthesisRequest(
        source, recipe, **{key: options.pop(key) for key in ("replies", "most_cost") if key in options}
    )
    return Synthesis(asked.open(known), asked, make_executor(kind, workers), folder, **options)


def run(folder: Path, registry: Registry | None = None, **options: Any) -> dict[str, Any]:
    work = synthesis(folder, registry, **options)
    with work.alone():
        return work.run(SILENT)


def left(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def plugin_of(synthesizer: Any) -> Any:
    class Plugin:
        @staticmethod
        @cw.hookimpl
        def callwright_synthesizers() -> list[Lazy]:
            return [Lazy("mine", lambda: synthesizer, summary="mine")]

    return Plugin()


MINE = {"synthesizer": "mine"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "out"
    run(folder)
    return folder


# What is made ---------------------------------------------------------------------------------------------------------


def test_tasks_and_reasons_are_written(whole: Path) -> None:
    manifest = json.loads((whole / MANIFEST).read_text())
    yields = manifest["yields"]
    tasks = cw.read_tasks(whole / "tasks.jsonl", environments=[shop.SHOP], registry=registry_of())
    rejected = [json.loads(line) for line in (whole / REJECTED).read_text().splitlines()]
    assert yields["planned"] == 30 == len(tasks) + len(rejected)
    assert yields["kept"] == len(tasks) > 5
    assert yields["accepted"] == yields["kept"] + yields["rejected"]["duplicates"]["asked before"]
    assert {row["stage"] for row in rejected} == {"execution", "duplicates"}
    assert all(row["reason"] and row["evidence"] and row["environment"] == "sample-shop" for row in rejected)
    assert [row["index"] for row in rejected] == sorted(row["index"] for row in rejected)
    assert manifest["seed"] == 3
    assert manifest["settings"]["count"] == 15
    assert tasks.head.about == {"synthesizer": "sample-prices", "seed": 3}
    for task in tasks:
        session = task.environment.open(task.scenario, task.seed)
        assert task.program is not None
        (call,) = task.program.calls
        assert session.call(call.tool, dict(call.arguments)).value == task.answer.values[0]


@pytest.mark.parametrize(("executor", "workers"), [("thread", 3), ("process", 2)])
def test_every_executor_leaves_the_same_bytes(whole: Path, tmp_path: Path, executor: str, workers: int) -> None:
    run(tmp_path, executor=executor, workers=workers)
    assert left(tmp_path) == left(whole)


@pytest.mark.slow
def test_ray_leaves_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray")
    run(tmp_path, executor="ray", workers=2)
    assert left(tmp_path) == left(whole)


def test_environments_share_the_count(tmp_path: Path) -> None:
    class Named(Prices):
        name = "mine"

        def plan(self, materials: Materials) -> Sequence[Unit]:
            return [
                Unit(f"{materials.environment.name}-{place}", place, 0, {"name": "apple"})
                for place in range(materials.count)
            ]

        def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
            return Rejected("none", materials.environment.name)

    counts = run(
        tmp_path,
        registry_of(plugin_of(Named())),
        table={**MINE, "environments": ["sample-shop", "email", "sample-shop+email"], "count": 8},
    )
    assert counts["yields"]["rejected"]["none"] == {"sample-shop": 3, "email": 3, "sample-shop+email": 2}
    assert cw.read_tasks(tmp_path / "tasks.jsonl", registry=registry_of()).head.environments == {}


def test_all_that_was_accepted_is_compared_in_the_order_of_the_plan(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    class Comparing(Prices):
        name = "mine"

        def compare(self, made: Sequence[Made]) -> Sequence[Rejected | None]:
            seen.append([one.unit.id for one in made])
            assert [one.unit.id for one in made[2:5]] == seen[-1][2:5]
            assert made[-1].unit.id == seen[-1][-1]
            assert all(one.accepted.facts["name"] == one.unit.payload["name"] for one in made)
            return [Rejected("quota", "enough") if place > 3 else None for place in range(len(made))]

    found = run(tmp_path, registry_of(plugin_of(Comparing())), table=MINE)
    assert found["yields"]["kept"] == 4
    (ids,) = seen
    assert ids == sorted(ids, key=lambda name: int(name.split("-")[1]))


# Going on -------------------------------------------------------------------------------------------------------------


KILLED = """
import os, signal
from pathlib import Path
import callwright as cw
from callwright.testing.synthesis.shop import Prices

FOLDER = Path(os.environ["KILLED_FOLDER"])
WORKER = os.environ["KILLED_WORKER"] == "1"
PARENT = os.getppid()


class Killed(Prices):
    name = "mine"

    def plan(self, materials):
        self.strike("plan")
        return super().plan(materials)

    def make(self, unit, materials):
        self.strike(unit.index)
        return super().make(unit, materials)

    def compare(self, made):
        self.strike("compare")
        return super().compare(made)

    def strike(self, place):
        if os.getppid() != PARENT:  # what is left of a command that was killed takes no mark of the next one
            return
        mark = FOLDER / f"strike-{place}"
        try:
            mark.unlink()
        except FileNotFoundError:
            return
        os.kill(PARENT if WORKER and isinstance(place, int) else os.getpid(), signal.SIGKILL)
        signal.pause()


@cw.hookimpl
def callwright_synthesizers():
    yield cw.Lazy("mine", Killed, summary="killed where a mark says so")
"""


#: Commands in processes of their own, each a fork of one that has imported all that another synthesis needed: a line of
#: arguments each, then its status.
FORGE = """
import json, os, sys, threading
from callwright.cli import main
from callwright.cli.root import root

answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_RDWR), 1)
os.dup2(1, 2)
root.main(["-p", "callwright.testing.synthesis.shop", "synthesize", "other.toml", "-o", "other"], standalone_mode=False)
assert threading.active_count() == 1
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        os.dup2(1, 0)
        sys.argv = ["callwright", *json.loads(line)]
        main()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), file=answers, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "thread", "process"])
def test_a_synthesis_that_is_killed_goes_on_with_the_same_bytes(tmp_path: Path, executor: str) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    recipe = {"synthesis": {**RECIPE["synthesis"], **MINE}}
    recipe["synthesis"]["executor"], recipe["synthesis"]["workers"] = executor, 1 if executor == "serial" else 2
    from callwright.recipe_file import write_toml

    (tmp_path / "recipe.toml").write_text(write_toml(recipe))
    (tmp_path / "other.toml").write_text(write_toml(RECIPE))
    environment = {**os.environ, "KILLED_FOLDER": str(tmp_path), "KILLED_WORKER": str(int(executor == "process"))}
    plugins = ["-p", "killed", "-p", "callwright.testing.synthesis.shop"]

    forge = subprocess.Popen(
        [sys.executable, "-c", FORGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=environment
    )
    assert forge.stdin is not None
    assert forge.stdout is not None
    asking, answers = forge.stdin, forge.stdout

    def synthesize(out: str) -> int:
        asking.write(json.dumps([*plugins, "synthesize", "recipe.toml", "-o", out]).encode() + b"\n")
        asking.flush()
        return int(answers.readline())

    with forge:
        assert synthesize("whole") == 0
        # One mark at a time: two workers could meet two of them before the first has killed the command.
        for place in ("plan", 0, 11, 29, "compare"):
            (tmp_path / f"strike-{place}").write_text("")
            assert synthesize("out") == -signal.SIGKILL, place
        assert synthesize("out") == 0
    assert left(tmp_path / "out") == left(tmp_path / "whole")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        path.name for path in (tmp_path / "whole").iterdir()
    )


def test_a_finished_synthesis_is_left_as_it_is(whole: Path, tmp_path: Path) -> None:
    said: list[str] = []

    class Never(Prices):
        def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
            raise AssertionError("nothing is left to make")

    before = left(whole)
    work = synthesis(whole, say=said.append)
    work.here = evolve(work.here, synthesizer=Never())
    with work.alone():
        work.run(SILENT)
    assert left(whole) == before
    assert "is finished" in said[-1]


def test_of_a_finished_synthesis_is_said_what_has_changed_since(whole: Path, tmp_path: Path) -> None:
    out, said = tmp_path / "out", list[str]()
    shutil.copytree(whole, out)
    ledger = json.loads((out / "ledger.json").read_text())
    ledger["made_of"]["versions"]["python"] = "3.9.1"
    (out / "ledger.json").write_text(json.dumps(ledger))
    before = left(out)
    with (work := synthesis(out, say=said.append)).alone():
        work.run(SILENT)
    assert left(out) == before
    assert "has changed since then" in said[-1]
    assert "python (3.9.1 -> 3." in said[-1]


def test_a_file_that_is_lost_is_written_again(tmp_path: Path, whole: Path) -> None:
    run(tmp_path)
    (tmp_path / "tasks.jsonl").unlink()
    (tmp_path / REJECTED).write_text("edited\n")
    run(tmp_path)
    assert left(tmp_path) == left(whole)


def test_the_plan_is_made_once(tmp_path: Path) -> None:
    plans: list[int] = []

    class Planned(Prices):
        name = "mine"

        def plan(self, materials: Materials) -> Sequence[Unit]:
            plans.append(1)
            return super().plan(materials)

    class Failing(Planned):
        def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, registry_of(plugin_of(Failing())), table=MINE)
    run(tmp_path, registry_of(plugin_of(Planned())), table=MINE)
    assert len(plans) == 1


def test_a_damaged_plan_or_unit_is_told_of(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / MANIFEST).unlink()
    plan = (tmp_path / PLAN).read_text()
    (tmp_path / PLAN).write_text(plan.replace("apple", "maple"))
    with pytest.raises(DataError, match=r"plan\.jsonl is not as it was written"):
        run(tmp_path)
    (tmp_path / PLAN).write_text(plan)
    units = (tmp_path / UNITS).read_text()
    (tmp_path / UNITS).write_text(units.replace("price-4", "price-x", 1))
    with pytest.raises(RunError, match=r"units\.jsonl, line 5"):
        run(tmp_path)


def test_other_settings_and_another_folder_are_refused(tmp_path: Path) -> None:
    run(tmp_path / "a")
    with pytest.raises(RunError, match=r"with other settings \(count\)"):
        run(tmp_path / "a", table={"count": 16})
    (tmp_path / "a" / PLAN).unlink()  # a plan that failed: whoever mends the recipe need not name another folder
    (tmp_path / "a" / UNITS).unlink()
    (tmp_path / "a" / MANIFEST).unlink()
    assert run(tmp_path / "a", table={"count": 16})["yields"] == run(tmp_path / "c", table={"count": 16})["yields"]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "letter.txt").write_text("Dear …")
    with pytest.raises(RunError, match="holds no synthesis"):
        run(tmp_path / "b")
    with synthesis(tmp_path / "a").alone(), pytest.raises(RunError, match="is being written by"):
        run(tmp_path / "a")


def test_what_takes_part_is_in_the_ledger(tmp_path: Path) -> None:
    run(tmp_path)
    ledger = json.loads((tmp_path / "ledger.json").read_text())
    assert list(ledger["made_of"]["environments"]) == ["'sample-shop'"]
    (tmp_path / MANIFEST).unlink()
    ledger["made_of"]["environments"]["'sample-shop'"] = "sha256:0"
    (tmp_path / "ledger.json").write_text(json.dumps(ledger))
    with pytest.raises(RunError, match="the environment 'sample-shop'"):
        run(tmp_path)
    assert run(tmp_path, accept_changes=True)["yields"]["planned"] == 30


# What goes wrong ------------------------------------------------------------------------------------------------------


def broken(**methods: Any) -> Registry:
    return registry_of(plugin_of(type("Mine", (Prices,), {"name": "mine", **methods})()))


def _row(made: Any, **change: Any) -> Any:
    return evolve(made, row={**made.row, **change}) if isinstance(made, Accepted) else made


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"plan": lambda self, materials: 1 / 0}, "planning 'sample-shop', raised ZeroDivisionError"),
        ({"plan": lambda self, materials: [Unit("a", 1, 0)]}, "counted from 0"),
        ({"plan": lambda self, materials: ["a"]}, "counted from 0"),
        ({"plan": lambda self, materials: [Unit("", 0, 0)]}, "the 'id' of unit"),
        ({"make": lambda self, unit, materials: unit.payload["x"]}, "raised KeyError at unit 'price-0'"),
        ({"make": lambda self, unit, materials: None}, "neither task nor reason"),
        ({"make": lambda self, unit, materials: Rejected("", "x")}, "unit 'price-0': the 'stage' of rejected"),
        ({"make": lambda self, unit, materials: Rejected("a", "b", {"c": (1,)})}, "'evidence' of Rejected"),
        ({"make": lambda self, unit, materials: _row(Prices().make(unit, materials), depth="x")}, "that is no task"),
        (
            {"make": lambda self, unit, materials: _row(Prices().make(unit, materials), id="x")},
            "two tasks of the id 'x'",
        ),
        ({"compare": lambda self, made: [None]}, "None or a Rejected for each"),
        ({"compare": lambda self, made: 1 / 0}, "comparing, raised ZeroDivisionError"),
    ],
)
def test_a_synthesizer_that_is_wrong_is_named(tmp_path: Path, methods: dict[str, Any], words: str) -> None:
    with pytest.raises(ComponentError, match=words):
        run(tmp_path, broken(**methods), table=MINE)


def test_machinery_that_fails_costs_one_unit(tmp_path: Path) -> None:
    def make(self: Any, unit: Unit, materials: Materials) -> Accepted | Rejected:
        if unit.index == 4:
            raise InfrastructureFailure("the server is down")
        return Prices().make(unit, materials)

    found = run(tmp_path, broken(make=make), table=MINE)
    assert found["yields"]["rejected"]["machinery"] == {"machinery failed": 1}


LETHAL = """
import os, signal
import callwright as cw
from callwright.testing.synthesis.shop import Prices


class Lethal(Prices):
    name = "mine"

    def make(self, unit, materials):
        if unit.index == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().make(unit, materials)


@cw.hookimpl
def callwright_synthesizers():
    yield cw.Lazy("mine", Lethal, summary="kills its worker")
"""


def test_a_unit_that_kills_workers_costs_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lethal_plugin.py").write_text(LETHAL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    import importlib

    module: ModuleType = importlib.import_module("lethal_plugin")
    found = run(tmp_path / "out", registry_of(module), table={**MINE, "count": 5}, executor="process", workers=2)
    assert found["yields"]["rejected"]["machinery"] == {"several workers were lost to it": 1}
    (row,) = [
        json.loads(line) for line in (tmp_path / "out" / REJECTED).read_text().splitlines() if "machinery" in line
    ]
    assert (row["unit"], row["index"]) == ("price-9", 9)


TELLING = """
import os, signal
import callwright as cw
from callwright.training import Rejected, Unit


class Telling:
    name = "mine"

    def plan(self, materials):
        if "LETHAL_PLAN" in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        return [Unit(f"{materials.environment.name}-{n}", n, n, {"planned": os.getpid()}) for n in range(40)]

    def make(self, unit, materials):
        return Rejected("telling", "no task", {**unit.payload, "made": os.getpid()})

    def compare(self, made):
        return [None] * len(made)


@cw.hookimpl
def callwright_synthesizers():
    yield cw.Lazy("mine", Telling, summary="tells who makes it")
"""


def test_the_workers_that_have_planned_make_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "telling_plugin.py").write_text(TELLING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    import importlib

    registry = registry_of(importlib.import_module("telling_plugin"))
    table = {**MINE, "environments": ["sample-shop", "email"]}
    run(tmp_path / "out", registry, table=table, executor="process", workers=1)
    lines = (tmp_path / "out" / REJECTED).read_text().splitlines()
    told = [json.loads(line)["evidence"] for line in lines]
    assert len(told) == 80
    assert len({worker for one in told for worker in one.values()} - {os.getpid()}) == 1
    monkeypatch.setenv("LETHAL_PLAN", "1")
    with pytest.raises(RunError, match=r"lost .* to the plan of environment number 1 \(.*SIGKILL"):
        run(tmp_path / "other", registry, table=table, executor="process", workers=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[synthesis]\ncount = 3\n", r"r\.toml:1: synthesis\.synthesizer is missing"),
        ('[synthesis]\nsynthesizer = "a"\nenvironments = []\ncount = 1\n', r"r\.toml:3: synthesis\.environments"),
        ('[synthesis]\nsynthesizer = "a"\nenvironments = ["b"]\ncount = 0\n', r"r\.toml:4: synthesis\.count"),
        ('[synthesis]\nsynthesizer = "a"\nenvironments = ["b"]\ncount = 1\nsed = 2\n', r"r\.toml:5: .*mean 'seed'"),
        (
            '[synthesis]\nsynthesizer = "a"\nenvironments = ["b"]\ncount = 1\nfile = "../x.jsonl"\n',
            r"r\.toml:5: synthesis\.file: .*no name of a file of tasks",
        ),
        ('name = "a"\n', "synthesis is missing"),
        ('corpus = "toolworld-mini-v1"\n', "callwright run takes it"),
        ("[synthesis\n", "not valid TOML"),
    ],
)
def test_a_recipe_that_is_wrong_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(RecipeError, match=words):
        load_synthesis(path)


def test_parts_that_do_not_exist_are_named_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(
        '[synthesis]\nenvironments = ["emial", "email", "email"]\ncount = 1\nteacher = "scriptd"\n'
        '[synthesis.synthesizer]\nname = "sample-prices"\nword = "x"\n'
    )
    from callwright.training.synthesis.work import open_synthesis

    with pytest.raises(RecipeError) as caught:
        open_synthesis(load_synthesis(path), registry_of())
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"{path}:{number}" for number in (7, 2, 2, 4)]
    assert "Did you mean 'words'" in lines[0]
    assert "Did you mean 'email'" in lines[1]
    assert "stands there twice" in lines[2]
    assert "Did you mean 'scripted'" in lines[3]


def test_an_override_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"--set synthesis\.count=no"):
        load_synthesis(RECIPE, ["synthesis.count=no"])
    assert load_synthesis(RECIPE, ["synthesis.count=4"]).table.count == 4
