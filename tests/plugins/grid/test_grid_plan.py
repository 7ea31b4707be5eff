"""What a grid is made of: values, seeds, names of settings; and everything that is refused, in a line each."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import click
import grid_fakes
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import FolderTaken, UnknownName, UsageError
from callwright.plugins import load_plugins
from callwright_plugins import grid, json_ir
from callwright_plugins.grid.metrics import Figures, check_depths, check_names
from callwright_plugins.grid.plan import Plan, read_over, read_seeds

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.chdir(tmp_path)
    registry = load_plugins(extra={"json-ir": json_ir, "grid": grid, "fakes": grid_fakes}, entry_points=False)

    def run(*words: str) -> Result:
        return CliRunner().invoke(root, ["grid", *words], obj=App(registry=registry), catch_exceptions=False)

    return run


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ()),
        (["trainer.rate=0.1, 0.3"], (("trainer.rate", ("0.1", "0.3")),)),
        (["a=1", "b.c=x"], (("a", ("1",)), ("b.c", ("x",)))),
        (["depths=[1, 2],[3]"], (("depths", ("[1, 2]", "[3]")),)),
        (["a={x = 1, y = 2},{}"], (("a", ("{x = 1, y = 2}", "{}")),)),
        (["""a="1,\\"2",'3,"4',5"""], (("a", ('"1,\\"2"', "'3,\"4'", "5")),)),
        (["a=x=1,y=2"], (("a", ("x=1", "y=2")),)),
    ],
)
def test_values_are_parted_at_commas_outside_of_brackets_and_quotes(options: list[str], expected: object) -> None:
    assert read_over(options) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["trainer.rate"], "expected KEY=V1,V2"),
        (["trainer.rate="], "expected KEY=V1,V2"),
        (["trainer.rate=1,,2"], "expected KEY=V1,V2"),
        (["=1"], "expected KEY=V1,V2"),
        (["seed=1,2"], "seeds are given by --seeds"),
        (["a=1", "a=2"], "is given twice; give all its values in one"),
        (["a=1,2,1"], "the value 1 is given twice"),
    ],
)
def test_what_is_no_grid_is_refused(options: list[str], said: str) -> None:
    with pytest.raises(click.UsageError, match=said):
        read_over(options)


def test_seeds() -> None:
    assert read_seeds("0-3") == (0, 1, 2, 3)
    assert read_seeds("9, 1,5-6,5") == (1, 5, 6, 9)
    for text in ("", "a", "3-1", "-1", "1..3", "0-99999999999", "1,"):
        with pytest.raises(click.UsageError, match="--seeds"):
            read_seeds(text)


@given(st.lists(st.text(min_size=1, max_size=90).map(lambda text: text.replace(",", ";")), min_size=1, unique=True))
def test_every_setting_has_a_folder_of_its_own_inside_of_the_grid(values: list[str]) -> None:
    plan = Plan("r", "", (), (("a.b", tuple(values)), ("c.b", ("1", "2"))), (0, 1))
    folders = [setting.folder for setting in plan.settings]
    assert len({folder.lower() for folder in folders}) == 2 * len(values)
    for folder in folders:
        assert folder.isascii()
        assert Path(folder).name == folder
        assert folder[0] != "."
        assert len(folder) < 100
    assert [(run.seed, run.setting) for run in plan.runs] == list(itertools.product((0, 1), plan.settings))


def test_settings_are_called_by_the_shortest_names_that_tell_them_apart() -> None:
    def names(*keys: str) -> list[str]:
        return [setting.name for setting in Plan("r", "", (), tuple((key, ("1",)) for key in keys), (0,)).settings]

    assert names("trainer.learning_rate", "reward.name") == ["learning_rate=1, reward=1"]
    assert names("trainer.steps", "trainer.warm_start.steps") == ["trainer.steps=1, trainer.warm_start.steps=1"]
    assert names() == ["as it stands"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--over", "trainer.rat=1,2"],
            "--over trainer.rat=1: There is no option of the trainer 'arithmetic' named 'rat'",
        ),
        (["--over", "trainer.rat=1,2"], "Did you mean 'rate'?"),
        (["--over", "trainr.rate=1"], "There is no recipe key named 'trainr'. Did you mean 'trainer'?"),
        (["--over", "trainer.rate=0.1,-1"], "--over trainer.rate=-1: "),
        (
            ["--over", "reward=flat,flet"],
            "--over reward=flet: There is no reward recipe named 'flet'. Did you mean 'flat'?",
        ),
        (
            ["--set", "trainer.name=arithmetik"],
            "--set trainer.name=arithmetik: There is no trainer named 'arithmetik'.",
        ),
        (["--set", "trainer.rate=1", "--over", "trainer.rate=1,2"], "trainer.rate is given by --set and by --over"),
        (["--metric", "rewrd"], "There is no metric named 'rewrd'. Did you mean 'reward'?"),
        (["--seeds", "x"], "--seeds x: expected numbers and ranges"),
        (["--seeds", "0-9000", "--over", "trainer.rate=1,2"], "are more than 10,000 runs"),
        (["--workers", "0"], "Invalid value for '--workers'"),
        (["--over", "trainer.rate=0.1,1e-1"], "the settings rate=0.1 and rate=1e-1 are one and the same"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    words: list[str], said: str, invoke: Invoke, tmp_path: Path
) -> None:
    done = invoke("sums.toml", "-o", "grid", *words)
    assert done.exit_code == 2
    assert said in done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "grid").exists()


def test_a_wrong_line_of_the_recipe_is_named(invoke: Invoke, recipe: Path) -> None:
    recipe.write_text(recipe.read_text() + "stepz = 3\n")
    done = invoke("sums.toml", "--over", "trainer.rate=0.1,0.2")
    assert done.exit_code == 2
    assert f"sums.toml:{len(recipe.read_text().splitlines())}: " in done.output
    assert "Did you mean 'steps'?" in done.output
    done = invoke("nowhere.toml")
    assert done.exit_code == 2
    assert "there is no such file" in done.output


def test_a_dry_run_lists_the_runs_and_makes_nothing(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("sums.toml", "--over", "trainer.rate=0.1,0.2", "--seeds", "4,7", "--dry-run")
    assert done.exit_code == 0
    assert done.output.count("to do") == 5
    assert "4 of 4 runs to do, 1 at a time: how long they take is not known" in " ".join(done.output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["sums.toml"]


def test_a_folder_of_something_else_is_refused(invoke: Invoke, tmp_path: Path, recipe: Path) -> None:
    def plan(*over: str, text: str = "x", fixed: tuple[str, ...] = ()) -> Plan:
        return Plan("sums.toml", text, fixed, read_over(over), (0, 1))

    folder = tmp_path / "grid"
    assert plan("a=1,2").settle(folder) == plan("a=1,2")
    for other, said in (
        (plan("a=1,3"), "--over"),
        (plan("a=1,2", text="y"), "the recipe"),
        (plan("a=1,2", text="y", fixed=("b=1",)), "--set or --unset"),
    ):
        with pytest.raises(FolderTaken, match=rf"holds another grid \(other: {said}\); choose another folder"):
            other.settle(folder)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    done = invoke("sums.toml", "-o", "taken")
    assert done.exit_code == 2
    assert "taken is not empty and holds no grid" in done.output


def test_figures_of_a_run() -> None:
    cells = {str(depth): {"accuracy": depth / 10} for depth in range(4)}
    rows = [{"step": step, "reward": float(step), "scores": {"answer": 0.5}, "kl": None} for step in range(1, 31)]
    one = Figures(
        {"overall": 0.1, "by_depth": cells}, {"overall": 0.4, "by_depth": cells}, [{"step": 10, "overall": 0.2}], rows
    )
    assert one.value("reward") == 25.5  # the last ten of thirty steps
    assert one.value("scores.answer") == 0.5
    assert one.value("gain") == pytest.approx(0.3)
    assert one.value("after@3") == 0.3
    assert one.value("before@1-3") == pytest.approx(0.2)
    assert [one.value(name) for name in ("after@9", "gain@2-9", "kl", "nothing", "reward.x")] == [None] * 5
    assert one.accuracy == {0: 0.1, 10: 0.2, 30: 0.4}
    assert one.depths == [0, 1, 2, 3]
    assert one.alarm is None
    rows[4] |= {"alarm": ""}
    rows[6] |= {"alarm": "it collapses"}
    assert one.alarm == (7, "it collapses")
    empty = Figures({}, {}, [], [])
    assert (empty.value("gain"), empty.value("reward"), empty.accuracy, empty.depths) == (None, None, {}, [])


def test_depths_that_nothing_is_evaluated_of() -> None:
    check_depths(["gain@1-2", "after", "kl"], {1, 2, 3})
    check_depths(["gain@9"], ())  # a trainer that evaluates otherwise
    for name in ("gain@9", "after@2-4", "before@2-1"):
        with pytest.raises(UsageError, match=f"--metric {name}: the tasks of the evaluation have the depths 1, 2, 3"):
            check_depths([name], {1, 2, 3})


def test_names_of_metrics() -> None:
    assert check_names(["kl", "gain@2-4", "openrlhf.any", "reward"]) == (
        "before", "after", "gain", "reward", "kl", "gain@2-4", "openrlhf.any",
    )  # fmt: skip
    with pytest.raises(UnknownName, match="Did you mean 'thought_words'"):
        check_names(["thought_word"])
