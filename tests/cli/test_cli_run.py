"""``callwright run``: the folder, the table, Ctrl-C and going on."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from callwright.commands.file_formats import schema_of

Invoke = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]


def test_a_run_from_beginning_to_end(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = invoke("run", recipe, "-o", folder)
    assert result.exit_code == 0, result.stderr
    assert "Accuracy by depth" in result.stdout
    assert result.stdout.splitlines()[-1] == f"report: {folder / 'report.html'}"
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    lines = result.stderr.splitlines()
    assert lines[:2] == [f"run folder {folder}", "training: 3 to do"]
    assert lines[2].startswith("training: 3/3, in ")
    assert lines[3] == "that was it"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["command"].startswith("callwright run ")
    assert str(recipe) in manifest["command"]


def test_files_of_a_run_fit_their_schemas(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    import jsonschema_rs

    invoke("run", recipe, "-o", tmp_path / "run")
    for name, file in (("manifest", "manifest.json"), ("evaluation", "evaluation.json")):
        jsonschema_rs.validator_for(schema_of(name)).validate(json.loads((tmp_path / "run" / file).read_text()))
    for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines():
        jsonschema_rs.validator_for(schema_of("metrics")).validate(json.loads(line))


def test_the_result_as_json(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    found = json.loads(invoke("run", recipe, "-o", folder, "--json").stdout)
    assert found["run"] == str(folder)
    assert found["report"] == str(folder / "report.html")
    assert found["evaluation"] == json.loads((folder / "evaluation.json").read_text())


def test_overrides_reach_the_trainer(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    invoke("run", recipe, "--set", "trainer.steps=5", "-o", folder)
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 5
    assert tomllib.loads((folder / "recipe.toml").read_text())["trainer"]["steps"] == 5


def test_a_key_that_is_unset_stays_so_when_the_run_goes_on(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ("run", recipe, "--set", "trainer.pause=0.0", "--unset", "trainer.steps", "-o", folder)
    assert invoke(*words).exit_code == 0
    assert tomllib.loads((folder / "recipe.toml").read_text())["trainer"] == {"name": "slow", "pause": 0.0}
    assert "--unset trainer.steps" in json.loads((folder / "manifest.json").read_text())["command"]
    (folder / "metrics.jsonl").unlink()
    for again in (("run", folder), words):
        assert invoke(*again).exit_code == 0
        assert len((folder / "metrics.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "trainer.stps",
            "error: --unset trainer.stps: There is no key in the recipe named 'trainer.stps'. Did",
        ),
        ("corpus", "error: --unset corpus: corpus is missing"),
        ("seed=3", "Error: --unset seed=3: expected a key alone, such as trainer.warm_start"),
        ("", "Error: --unset : expected a key alone"),
    ],
)
def test_what_cannot_be_unset(key: str, said: str, invoke: Invoke, recipe: Path) -> None:
    done = invoke("run", recipe, "--dry-run", "--unset", key)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_finished_run_says_so_and_how_to_train_longer(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a run"
    invoke("run", recipe, "-o", folder)
    (folder / "checkpoints" / "final").mkdir()  # as trainers leave it that have a model
    done = invoke("run", folder)
    assert done.exit_code == 0
    first = done.stderr.splitlines()[0]
    assert first.startswith(
        f"{folder} is finished after 3 steps; its report is {folder / 'report.html'}. Nothing is left"
    )
    longer = f"callwright run '{folder / 'recipe.toml'}' --set 'model={folder / 'checkpoints/final'}' --output ANOTHER"
    assert first.endswith(f"more steps are another run, from its model: {longer}")
    (folder / "metrics.jsonl").write_text("no rows\n")
    assert "is finished; its report" in invoke("run", folder, "--json").stderr


def test_a_finished_run_of_another_recipe_is_refused_and_nothing_else_is_said(
    invoke: Invoke, recipe: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "a run"
    invoke("run", recipe, "-o", folder)
    (folder / "checkpoints" / "final").mkdir()
    done = invoke("run", folder, "--set", "seed=4711")
    assert done.exit_code == 2
    assert "is finished" not in done.stderr
    assert "holds a run of another recipe" in done.stderr
    assert f"go on with that run: callwright run '{folder}'" in done.stderr


def test_a_run_of_which_something_is_left_is_not_called_finished(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    invoke("run", recipe, "-o", folder)
    assert "finished" not in invoke("run", folder).stderr


def test_a_run_folder_is_a_recipe_to_go_on_with(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    invoke("run", recipe, "--set", "trainer.steps=4", "-o", folder)
    rows = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(rows[:2]))
    result = invoke("run", folder)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith(f"going on with {folder}\ntraining: 2 to do, 2 done before\n")
    assert (folder / "metrics.jsonl").read_text() == "".join(rows)
    assert invoke("run", folder, "-o", tmp_path / "other").exit_code == 2


def test_without_output_a_folder_is_made(
    invoke: Invoke, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    invoke("run", recipe)
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("sums-")
    assert (folder / "report.html").exists()


def test_a_dry_run_checks_and_trains_nothing(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = invoke("run", recipe, "--dry-run", "-o", folder, "--set", "seed=7")
    assert tomllib.loads(result.stdout)["seed"] == 7
    assert not folder.exists()
    found = json.loads(invoke("run", recipe, "--dry-run", "--json").stdout)
    assert found["trainer"] == "slow"
    assert found["splits"] == {"train": 12, "validation": 12}
    assert invoke("run", recipe, "--dry-run", "--set", "algorithm=grpo").exit_code == 2


@pytest.mark.parametrize("dry", [("--dry-run",), ()])
def test_wrong_keys_and_wrong_components_are_told_together(
    dry: tuple[str, ...], invoke: Invoke, recipe: Path, tmp_path: Path
) -> None:
    wrong = ("foo.bar=1", "turns.assistnt=2", "sampler.seed=1", "algorithm=grop", "trainer.stepz=3", "reward=tierr")
    done = invoke("run", recipe, *dry, "-o", tmp_path / "run", *(part for one in wrong for part in ("--set", one)))
    assert done.exit_code == 2
    told = done.stderr.removeprefix("error: ").splitlines()
    assert sorted(line.partition(": ")[0] for line in told) == sorted(f"--set {one}" for one in wrong)
    assert not (tmp_path / "run").exists()


def test_words_of_set_that_say_nothing_are_told_together(invoke: Invoke, recipe: Path) -> None:
    done = invoke("run", recipe, "--dry-run", "--set", "algorithm", "--set", "trainer.steps.a=1", "--set", "=3")
    assert done.exit_code == 2
    assert [line.partition(": ")[0] for line in done.stderr.removeprefix("error: ").splitlines()] == [
        "--set algorithm",
        "--set trainer.steps.a=1",
        "--set =3",
    ]


@pytest.mark.parametrize("key", ["corpus.train=3", "trainer={}", "algorithm=3", "algoritm.name=dapo"])
def test_nothing_is_said_of_what_hangs_on_a_wrong_key(key: str, invoke: Invoke, recipe: Path) -> None:
    done = invoke("run", recipe, "--dry-run", "--set", key, "--set", "reward=tierr")
    assert done.exit_code == 2
    assert "tierr" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.toml",), "error: nothing.toml: there is no such file."),
        (
            ("RECIPE", "--set", "trainer.stepz=1"),
            "error: --set trainer.stepz=1: There is no option of the trainer 'slow'",
        ),
        (("RECIPE", "--set", "reward=tear"), "error: --set reward=tear: There is no reward recipe named 'tear'."),
        (("RECIPE", "--set", "corpus.train=x"), "error: --set corpus.train=x: corpus 'sums-v1' has no split 'x'."),
        (("RECIPE", "--set", "loud"), "error: --set loud: expected KEY=VALUE"),
        (("RECIPE", "--set", "sead=1"), "error: --set sead=1: There is no recipe key named 'sead'."),
    ],
)
def test_recipes_that_are_not_right(
    invoke: Invoke, recipe: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    folder = tmp_path / "run"
    result = invoke("run", *(str(recipe) if word == "RECIPE" else word for word in words), "-o", folder)
    assert result.exit_code == 2
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1
    assert not folder.exists()


def test_a_mistake_in_the_file_is_named_with_its_line(invoke: Invoke, recipe: Path) -> None:
    recipe.write_text(recipe.read_text().replace('reward = "sums"', 'reward = "sum"'))
    result = invoke("run", recipe)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {recipe}:2: There is no reward recipe named 'sum'. Did you mean 'sums'?")
    recipe.write_text("corpus = \n")
    assert f"error: {recipe}:1: not valid TOML" in invoke("run", recipe).stderr


def test_a_folder_of_another_recipe_is_left_alone(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    invoke("run", recipe, "-o", folder)
    before = (folder / "metrics.jsonl").read_bytes()
    result = invoke("run", recipe, "--set", "seed=9", "-o", folder)
    assert result.exit_code == 2
    assert "holds a run of another recipe (it differs in seed)" in result.stderr
    assert (folder / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("dry", [("--dry-run",), ()])
def test_a_folder_of_something_else_is_left_alone(
    invoke: Invoke, recipe: Path, tmp_path: Path, dry: tuple[str, ...]
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("precious")
    result = invoke("run", recipe, "-o", folder, *dry)
    assert result.exit_code == 2
    assert f"{folder} is not empty and holds no run (a.txt, b.txt); name a folder that is empty or not there yet" in (
        result.stderr
    )
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt"]


def test_a_folder_of_somebodys_checkpoints_is_left_alone(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "checkpoints" / "step-1").mkdir(parents=True)
    result = invoke("run", recipe, "-o", tmp_path / "mine")
    assert (result.exit_code, "holds no run (checkpoints)" in result.stderr) == (2, True)


def test_what_a_killed_start_left_is_no_hindrance(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    invoke("run", recipe, "-o", folder)
    for path in folder.iterdir():
        if path.is_file() and not path.name.startswith(("ledger", "manifest")):
            path.unlink()
    (folder / "recipe.toml.part").write_text("half of")
    assert invoke("run", recipe, "-o", folder).exit_code == 0


def test_a_file_is_no_run_folder_and_an_empty_name_no_recipe(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    result = invoke("run", recipe, "-o", tmp_path / "file")
    assert (result.exit_code, (tmp_path / "file").read_text()) == (2, "precious")
    assert f"{tmp_path / 'file'} is a file" in result.stderr
    assert "the name of the recipe is empty" in invoke("run", "").stderr


def test_a_folder_that_cannot_be_made(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = invoke("run", recipe, "-o", tmp_path / "file" / "run")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith(
        f"error: the run folder {tmp_path / 'file' / 'run'} cannot be written"
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stop_says_how_to_go_on_and_loses_nothing(
    start: Start, recipe: Path, tmp_path: Path, number: int, status: int
) -> None:
    folder = tmp_path / "a run"
    slow = ("--set", "trainer.steps=100000", "--set", "trainer.pause=0.02")
    process = start("run", recipe, *slow, "-o", folder)
    deadline = time.monotonic() + 300
    while not (folder / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    output, errors = process.communicate()
    assert process.returncode == status
    assert output == ""
    last = errors.splitlines()[-1]
    assert last == f"stopped; nothing is lost; go on with: callwright -p cli_fakes run '{folder}'"
    assert "Traceback" not in errors
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    report = start("report", folder)
    assert report.communicate()[0] == f"{folder / 'report.html'}\n"
    assert f"stopped at step {len(rows)} of 100,000" in (folder / "report.html").read_text()
