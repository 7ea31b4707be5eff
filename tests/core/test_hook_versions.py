"""The versions of the hooks: a record that is kept, and plugins that are told what changed since theirs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pluggy
import pytest

import callwright as cw
from callwright import hook_versions, hookspecs
from callwright.cli.plugin_checks import PluginFinding, check_plugin
from callwright.hook_versions import changes, hooks_of, misfit, recorded
from callwright.plugins import PluginInfo, load_plugins

CURRENT = hookspecs.HOOKSPEC_VERSION


def test_the_record_is_kept() -> None:
    newest = max(recorded())
    raise_to = (
        f"hookspecs.py has changed: raise HOOKSPEC_VERSION to {newest + 1} and add an entry to hook_versions.json"
    )
    assert recorded()[newest] == hooks_of(hookspecs), raise_to
    assert newest == CURRENT
    assert sorted(recorded()) == list(range(1, newest + 1))


def test_what_changes_is_said() -> None:
    before = {"a": ("x", "y"), "b": (), "c": ("z",)}
    after = {"a": ("x", "w"), "c": ("z",), "d": ()}
    assert list(changes(before, after)) == [
        ("a", "no longer has the argument 'y'"),
        ("a", "has the new argument 'w'"),
        ("b", "is gone"),
        ("d", "is new"),
    ]


@pytest.fixture
def version_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version before the first: another name for an argument, one that is gone, and a hook that is gone."""
    old = {**hooks_of(hookspecs), "callwright_prompt": ("task", "chat", "messages"), "callwright_epilogue": ("run",)}
    del old["callwright_users"]
    monkeypatch.setattr(hook_versions, "recorded", lambda: {0: old, **recorded()})
    monkeypatch.setattr("callwright.cli.plugin_checks.recorded", lambda: {0: old, **recorded()})


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """What the check finds in a plugin of this text."""

    def of(text: str) -> list[PluginFinding]:
        (tmp_path / "old_plugin.py").write_text("import callwright as cw\n" + text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        sys.modules.pop("old_plugin", None)
        info = PluginInfo("old", module="old_plugin")
        return list(check_plugin(load_plugins(entry_points=False), info))

    yield of
    sys.modules.pop("old_plugin", None)


@pytest.mark.usefixtures("version_0")
def test_a_plugin_of_an_old_version_is_told_what_changed_for_it(found: object) -> None:
    assert callable(found)
    hooks = "@cw.hookimpl\ndef callwright_prompt(task, chat): ...\n@cw.hookimpl\ndef callwright_epilogue(run): ...\n"
    said = {(one.level, one.what): one.message for one in found(f"callwright_hooks = 0\n{hooks}")}
    assert (
        said["warning", "hook callwright_prompt"] == "since version 0 of the hooks it no longer has the argument 'chat'"
    )
    assert said["warning", "hook callwright_epilogue"] == "since version 0 of the hooks it is gone"
    assert ("error", "hook callwright_prompt") in said


@pytest.mark.usefixtures("version_0")
def test_one_that_uses_nothing_of_that_is_told_so(found: object) -> None:
    assert callable(found)
    said = found("callwright_hooks = 0\n@cw.hookimpl\ndef callwright_prompt(messages): ...\n")
    assert [(one.level, one.message) for one in said] == [
        ("ok", f"nothing that it uses has changed up to version {CURRENT}"),
        ("ok", ""),
    ]


@pytest.mark.parametrize(
    ("declared", "said"), [(f"{CURRENT + 1}", "upgrade Callwright"), ("-1", "there are: 1"), ("'1'", "there are: 1")]
)
def test_a_version_that_is_none_is_named(found: object, declared: str, said: str) -> None:
    assert callable(found)
    [one] = found(f"callwright_hooks = {declared}\n")
    assert one.level == "error"
    assert said in one.message


def test_one_that_was_written_for_these_hooks_or_says_nothing_is_not_spoken_of(found: object) -> None:
    assert callable(found)
    assert found(f"callwright_hooks = {CURRENT}\n") == found("") == []


def test_a_plugin_that_does_not_fit_names_its_version() -> None:
    plugin = ModuleType("plugin")
    assert "version" not in str(misfit(plugin, "mine", ValueError("no such argument")))
    plugin.callwright_hooks = CURRENT + 1  # type: ignore[attr-defined]
    said = str(misfit(plugin, "mine", ValueError("no such  argument")))
    assert said.startswith("plugin 'mine' does not fit the hooks: no such argument. It was written for version")
    assert said.endswith("upgrade Callwright")
    plugin.callwright_hooks = CURRENT - 1  # type: ignore[attr-defined]
    assert "plugins check mine" in str(misfit(plugin, "mine", ValueError("x")))


class Leaving:
    """Hooks of which one has an argument that will go."""

    @staticmethod
    @pluggy.HookspecMarker("callwright")(warn_on_impl_args={"chat": DeprecationWarning("it is 'messages' now")})
    def callwright_prompt(task: object, messages: object, chat: object) -> None: ...


def test_an_argument_that_will_go_is_warned_of(found: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(found)
    monkeypatch.setattr(hookspecs, "callwright_prompt", Leaving.callwright_prompt)
    said = found("@cw.hookimpl\ndef callwright_prompt(chat): ...\n")
    assert ("warning", "the argument 'chat' will go: it is 'messages' now") in {
        (one.level, one.message) for one in said
    }
    manager = pluggy.PluginManager("callwright")
    manager.add_hookspecs(Leaving)
    plugin = ModuleType("plugin")
    plugin.callwright_prompt = cw.hookimpl(lambda chat: None)  # type: ignore[attr-defined]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        manager.register(plugin)
    assert [str(one.message) for one in heard] == ["it is 'messages' now"]
