"""Tab completes commands, options, and the names of components, plugins and recipes."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import callwright as cw
from callwright.cli.root import root
from callwright.commands import App


def completed(*words: str) -> list[str]:
    """What the last word, which is not finished, may become."""
    found = ShellComplete(root, {"obj": App()}, "callwright", "_X").get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("env", "sn"), ["snapshot"]),
        (("evaluate", "--corpus", "toolworld"), ["toolworld-mini-v1"]),
        (("evaluate", "--benchmark", "depthbench-o"), ["depthbench-official"]),
        (("score", "--ir", "jso"), ["json"]),
        (("env", "tools", "bank"), ["banking"]),
        (("plugins", "check", "tier-"), ["tier-rewards"]),
        (("plugins", "show", "toolrl-gua"), ["toolrl-guarded"]),
        (("run", "tier-min"), ["tier-mini"]),
        (("evaluate", "--rewa"), ["--reward"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("evaluate", "--corpus", "there-is-no-such"), []),
    ],
)
def test_what_was_begun_is_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


def test_recipes_and_runs_are_found_where_the_path_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tier-mine.toml").touch()
    (tmp_path / "notes.txt").touch()
    run = tmp_path / "runs" / "first"
    run.mkdir(parents=True)
    (run / "recipe.toml").touch()
    assert completed("run", "tier-m") == ["tier-mini", "tier-mine.toml"]
    assert completed("run", f"runs{os.sep}") == ["runs/first"]
    assert completed("run", "no/such/") == []


def test_a_plugin_that_cannot_be_loaded_completes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert completed("-p", "there_is_no_such_module", "evaluate", "--corpus", "tool") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert root.main(["completion", shell], standalone_mode=False) in (0, None)
    assert "_CALLWRIGHT_COMPLETE" in capsys.readouterr().out


def refused(*arguments: str) -> str:
    with pytest.raises((cw.CallwrightError, click.ClickException)) as caught:
        root.main(list(arguments), standalone_mode=False)
    return str(caught.value)


def test_a_module_that_is_not_there_has_a_near_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brief.py").touch()
    assert refused("-p", "breif", "plugins", "list").endswith("Did you mean 'brief'?")
    assert "The plugin 'tier-rewards' is installed" in refused("-p", "tier-reward", "plugins", "list")
    assert "The plugin 'report' is installed" in refused("-p", "report", "plugins", "list")
    assert "There is no xyzzy.py here" in refused("-p", "xyzzy", "plugins", "list")


def test_of_many_known_names_the_nearest_ten_are_listed() -> None:
    known = [f"recipe-{number}" for number in range(50)] + ["tier-mini"]
    said = str(cw.errors.UnknownName("recipe", "tier-mni", known))
    assert "Did you mean 'tier-mini'?" in said
    assert said.endswith(", and 41 more.")
    assert said.count("recipe-") == 9


def test_a_corpus_is_evaluated_on_the_split_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", "--corpus", "toolworld-mini-v1", "--sampler", "gold", "--limit", "2", "--json"]
    root.main(arguments, standalone_mode=False)
    assert '"n": 2' in capsys.readouterr().out
