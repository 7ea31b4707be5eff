"""The registry: discovery, broken and blocked plugins, names, options, events, tracing."""

from __future__ import annotations

import functools
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import callwright as cw
from callwright import hookspecs, plugins
from callwright.environments import FunctionEnvironment
from callwright.errors import DataError, MissingExtra, NameClash, PluginError, UnknownName
from callwright.pipeline import event_caller
from callwright.plugins import EVENTS, KINDS, Registry, load_plugins
from callwright.walk import execute


def plugin(**hooks: Any) -> Any:
    """A plugin object: ``parsers=[Lazy…]`` registers components, a function is the hook itself."""
    made = {}
    for name, hook in hooks.items():
        function = hook if callable(hook) else (lambda found=hook: found)
        made[f"callwright_{name}"] = cw.hookimpl(function)
    return SimpleNamespace(**made)


def registry_with(**hooks: Any) -> Registry:
    registry = Registry()
    registry.add(plugin(**hooks), name="mine")
    return registry


class Upper:
    name = "upper"

    def __init__(self, marks: int = 1, *, word: str = "x") -> None:
        self.marks, self.word = marks, word


def upper(**more: Any) -> cw.Lazy:
    return cw.Lazy("upper", Upper, "shouts", **more)


# Hooks and kinds ------------------------------------------------------------------------------------------------------


def test_every_hook_is_a_kind_or_an_event() -> None:
    specified = {name for name in vars(hookspecs) if name.startswith("callwright_")}
    assert specified == {*KINDS.values(), *EVENTS}
    for name in specified:
        assert getattr(hookspecs, name).__doc__
    assert len(Path(hookspecs.__file__).read_text(encoding="utf-8").splitlines()) < 185


def test_a_component_is_made_by_its_name() -> None:
    registry = registry_with(parsers=[upper(options={"word": "y"})])
    assert registry.names("parser") == ["upper"]
    assert registry.names("corpus") == []
    made = registry.create("parser", "upper")
    assert (made.marks, made.word) == (1, "y")
    assert registry.create("parser", "upper") is made, "without options it is the same object"
    other = registry.create("parser", "upper", marks=3, word="z")
    assert (other.marks, other.word) == (3, "z")
    assert registry.create("parser", "upper") is made
    spec = registry.spec("parser", "upper")
    assert (spec.plugin, spec.summary) == ("mine", "shouts")
    assert list(registry.components()) == [("parser", spec)]


def test_a_component_that_is_an_object_takes_no_options() -> None:
    registry = registry_with(toolsets=[cw.Lazy("pair", "callwright.environments.protocol:EXECUTED")])
    assert registry.create("toolset", "pair") == {"ok", "empty", "partial"}
    with pytest.raises(cw.UsageError, match="the toolset 'pair' takes no options, but was given a, b"):
        registry.create("toolset", "pair", b=1, a=2)


def test_a_factory_that_wants_the_registry_gets_it() -> None:
    class Composer:
        def __init__(self, registry: Registry, size: int = 1) -> None:
            self.registry = registry

    registry = registry_with(samplers=[cw.Lazy("composer", Composer)])
    assert registry.create("sampler", "composer").registry is registry
    with pytest.raises(UnknownName, match="no option of the sampler 'composer' named 'registry'"):
        registry.create("sampler", "composer", registry="theirs")


def test_options_are_checked_before_anything_is_made() -> None:
    def needing(size: int, *, seed: int = 0) -> Upper:
        return Upper(size)

    registry = registry_with(parsers=[upper()], corpora=[cw.Lazy("c", needing)])
    with pytest.raises(UnknownName, match=r"no option of the parser 'upper' named 'mark'. Did you mean 'marks'"):
        registry.create("parser", "upper", mark=2)
    with pytest.raises(cw.UsageError, match="the corpus 'c' needs the option 'size'"):
        registry.create("corpus", "c", seed=1)
    assert registry.create("corpus", "c", size=4).marks == 4


def test_factories_that_cannot_be_hashed_are_read_like_others() -> None:
    class Needing(dict[str, int]):
        def __call__(self, size: int) -> Upper:
            return Upper(size)

    registry = registry_with(corpora=[cw.Lazy("c", Needing())])
    with pytest.raises(cw.UsageError, match="the corpus 'c' needs the option 'size'"):
        registry.create("corpus", "c")
    assert registry.create("corpus", "c", size=4).marks == 4


def test_unknown_names_say_what_there_is() -> None:
    registry = registry_with(parsers=[upper(), cw.Lazy("lower", Upper)])
    with pytest.raises(UnknownName) as caught:
        registry.create("parser", "uper")
    assert str(caught.value) == "There is no parser named 'uper'. Did you mean 'upper'? Known: lower, upper."
    with pytest.raises(UnknownName, match="Known: none is registered"):
        registry.create("corpus", "upper")
    with pytest.raises(UnknownName, match=r"no kind of component named 'parsers'. Did you mean 'parser'"):
        registry.names("parsers")


# Two registries -------------------------------------------------------------------------------------------------------


def test_two_registries_know_nothing_of_each_other() -> None:
    heard: list[str] = []
    first = registry_with(parsers=[upper()], run_finished=lambda run: heard.append("first"))
    second = registry_with(parsers=[cw.Lazy("upper", Upper, options={"marks": 9})])
    assert first.create("parser", "upper").marks == 1
    assert second.create("parser", "upper").marks == 9
    second.hook.callwright_run_finished(run=None)
    assert heard == []
    first.hook.callwright_run_finished(run=None)
    assert heard == ["first"]
    assert cw.default_registry() is cw.default_registry()
    assert "upper" not in cw.default_registry().names("parser")


def test_a_registry_can_be_made_of_given_plugins_only() -> None:
    registry = load_plugins(entry_points=False, extra={"a": plugin(parsers=[upper()])})
    assert [info.name for info in registry.plugins] == ["a"]
    assert registry.names("parser") == ["upper"]
    assert registry.names("reward recipe") == []


# Names ----------------------------------------------------------------------------------------------------------------


def test_a_name_belongs_to_one_plugin() -> None:
    registry = registry_with(parsers=[upper()])
    clashing = plugin(corpora=[cw.Lazy("innocent", Upper)], parsers=[cw.Lazy("upper", Upper)])
    with pytest.raises(NameClash) as caught:
        registry.add(clashing, name="theirs")
    assert str(caught.value) == (
        "two plugins register the parser 'upper': 'mine' and 'theirs'. "
        "Leave one out: callwright -p no:mine …  or  callwright -p no:theirs …"
    )
    assert registry.names("corpus") == [], "nothing of the second one stays"
    assert [info.name for info in registry.plugins] == ["mine"]
    registry.add(plugin(corpora=[cw.Lazy("upper", Upper)]), name="theirs")  # of another kind


def test_a_plugin_is_added_once() -> None:
    registry, module = Registry(), plugin(parsers=[upper()])
    registry.add(module, name="mine")
    with pytest.raises(NameClash, match="a plugin named 'mine' is already registered"):
        registry.add(plugin(), name="mine")
    with pytest.raises(NameClash, match="'other' is already registered, as the plugin 'mine'"):
        registry.add(module, name="other")


def test_the_order_of_plugins_decides_nothing() -> None:
    plugins = {"a": plugin(parsers=[upper()]), "b": plugin(parsers=[cw.Lazy("lower", Upper)], corpora=[upper()])}
    first = load_plugins(entry_points=False, extra=plugins)
    second = load_plugins(entry_points=False, extra=dict(reversed(plugins.items())))
    assert list(first.components()) == list(second.components())
    assert first.plugins == second.plugins


# Broken plugins -------------------------------------------------------------------------------------------------------


def raising() -> Iterator[cw.Lazy]:
    yield upper()
    raise ZeroDivisionError("by nothing")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (plugin(parser=[upper()]), "plugin 'theirs' does not fit the hooks: .*unknown hook 'callwright_parser'"),
        (
            plugin(run_finished=lambda run, folder: None),
            r"plugin 'theirs' does not fit the hooks: .*Argument\(s\) \{'folder'\} are declared in the hookimpl",
        ),
        (
            plugin(parsers=["upper"]),
            r"plugin 'theirs': callwright_parsers yielded 'upper'; it must yield callwright.Lazy",
        ),
        (plugin(parsers=lambda: raising()), "plugin 'theirs': callwright_parsers raised ZeroDivisionError: by nothing"),
    ],
)
def test_a_plugin_that_does_not_fit_says_how(broken: Any, message: str) -> None:
    registry = registry_with(corpora=[upper()])
    with pytest.raises(PluginError, match=message):
        registry.add(broken, name="theirs")
    assert [info.name for info in registry.plugins] == ["mine"]
    assert registry.names("parser") == []
    registry.add(plugin(parsers=[upper()]), name="theirs")


def test_a_hook_may_leave_out_arguments() -> None:
    registry = registry_with(attempt_scored=lambda reward: None)
    assert registry.listens("callwright_attempt_scored")


@pytest.mark.parametrize(
    "target", ["callwright.language.program", "callwright.language.program:", ":Program", "a b:c", "callwright/x:y"]
)
def test_a_target_that_cannot_be_one_is_refused_at_once(target: str) -> None:
    with pytest.raises(PluginError, match=r"not of the form 'package.module:name'"):
        cw.Lazy("x", target)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_package.module:thing", "'no_such_package.module:thing' cannot be imported: No module named"),
        ("callwright.no_such_module:thing", "cannot be imported: No module named 'callwright.no_such_module'"),
        ("callwright.language.program:no_such_thing", "raised AttributeError"),
    ],
)
@pytest.mark.parametrize("extra", [None, "train"])
def test_a_component_that_cannot_be_loaded_names_its_plugin(target: str, message: str, extra: str | None) -> None:
    registry = registry_with(parsers=[cw.Lazy("x", target, extra=extra)])
    with pytest.raises(PluginError, match=f"plugin 'mine': .*{message}") as caught:
        registry.create("parser", "x")
    assert not isinstance(caught.value, MissingExtra)


# Extras ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path; what was imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(path: Path, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")


def test_a_missing_extra_names_the_command_that_installs_it(folder: Path) -> None:
    write(folder / "absent_gpu_plugin.py", "import absent_gpu\nclass Fast: ...")
    write(folder / "late_plugin.py", "class Late:\n    def __init__(self):\n        import absent_gpu.kernels")
    registry = registry_with(
        samplers=[
            cw.Lazy("fast", "absent_gpu_plugin:Fast", extra="vllm"),
            cw.Lazy("late", "late_plugin:Late", extra="vllm"),
            cw.Lazy("plain", "absent_gpu_plugin:Fast"),
        ]
    )
    for name in ("fast", "late"):
        with pytest.raises(MissingExtra) as caught:
            registry.create("sampler", name)
        assert str(caught.value) == (
            f"{name!r} needs the package 'absent_gpu', which is not installed. "
            "Install it with: pip install 'callwright[vllm]'"
        )
        assert caught.value.exit_status == 3
    with pytest.raises(PluginError, match="No module named 'absent_gpu'"):
        registry.create("sampler", "plain")


# Entry points ---------------------------------------------------------------------------------------------------------


def distribution(folder: Path, name: str, version: str, modules: dict[str, str], **points: str) -> None:
    """An installed distribution: its modules, and the metadata that pip would have written."""
    for module, source in modules.items():
        write(folder / f"{module}.py", source)
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "\n".join(f"{point.replace('_', '-')} = {value}" for point, value in points.items())
    write(info / "entry_points.txt", f"[callwright]\n{lines}\n")


GOOD = """
    from callwright import Lazy, hookimpl

    @hookimpl
    def callwright_parsers():
        yield Lazy("from-{0}", "{0}:Form", summary="theirs")

    class Form: ...
"""


@pytest.fixture
def installed(folder: Path) -> Path:
    """One good third-party distribution beside three that are broken in different ways."""
    distribution(folder, "good-dist", "1.2", {"good_mod": GOOD.format("good_mod")}, good="good_mod")
    distribution(folder, "bad-import", "0.1", {"bad_mod": "import nothing_like_this"}, bad_import="bad_mod")
    distribution(folder, "bad-exit", "0.2", {"exit_mod": "raise SystemExit(1)"}, bad_exit="exit_mod")
    unknown = "from callwright import hookimpl\n@hookimpl\ndef callwright_parcers(): return ()"
    distribution(folder, "bad-hook", "0.3", {"hook_mod": unknown}, bad_hook="hook_mod")
    return folder


def test_a_broken_plugin_names_itself_and_stops_no_other(installed: Path) -> None:
    registry = load_plugins()
    infos = {info.name: info for info in registry.plugins}
    assert infos["good"].version == "1.2"
    assert infos["good"].hooks == ("callwright_parsers",)
    assert {name for name, info in infos.items() if info.error} == {"bad-import", "bad-exit", "bad-hook"}
    assert infos["bad-import"].error == (
        "plugin 'bad-import' (bad-import 0.1) is broken: ModuleNotFoundError: No module named 'nothing_like_this'. "
        "Run without it: callwright -p no:bad-import …"
    )
    assert "SystemExit" in infos["bad-exit"].error
    assert "unknown hook 'callwright_parcers'" in infos["bad-hook"].error
    assert type(registry.create("parser", "from-good_mod")).__name__ == "Form"
    assert set(registry.names("parser")) >= {"json", "xml", "direct", "from-good_mod"}
    with pytest.raises(
        UnknownName, match=r"no parser named 'from-bad'.*plugin 'bad-import' .bad-import 0.1. is broken"
    ):
        registry.create("parser", "from-bad")


def test_a_blocked_plugin_is_never_imported(installed: Path) -> None:
    blocked = ["good", "bad-import", "bad-exit", "bad-hook"]
    registry = load_plugins(blocked=blocked)
    assert {info.name for info in registry.plugins if info.blocked} == set(blocked)
    assert not [info for info in registry.plugins if info.error]
    assert {"good_mod", "bad_mod", "exit_mod", "hook_mod"}.isdisjoint(sys.modules)
    with pytest.raises(UnknownName, match=r"Blocked plugins: bad-exit, bad-hook, bad-import, good\."):
        registry.create("parser", "from-good_mod")
    with pytest.raises(UnknownName, match=r"no plugin named 'godo'. Did you mean 'good'"):
        load_plugins(blocked=["godo"])


def test_loading_imports_plugins_but_not_their_components(folder: Path) -> None:
    lazy = GOOD.format("light_mod").replace("light_mod:Form", "heavy_mod:Form")
    distribution(folder, "light", "1", {"light_mod": lazy, "heavy_mod": "class Form: ..."}, light="light_mod")
    registry = load_plugins()
    assert "light_mod" in sys.modules
    assert "heavy_mod" not in sys.modules
    registry.create("parser", "from-light_mod")
    assert "heavy_mod" in sys.modules


def test_two_distributions_may_not_give_a_plugin_the_same_name(folder: Path) -> None:
    distribution(folder, "first", "1", {"first_mod": GOOD.format("first_mod")}, same="first_mod")
    distribution(folder, "second", "2", {"second_mod": GOOD.format("second_mod")}, same="second_mod")
    with pytest.raises(NameClash, match="two distributions name a plugin 'same'") as caught:
        load_plugins()
    assert "first 1" in str(caught.value)
    assert "second 2" in str(caught.value)
    assert load_plugins(blocked=["same"]).names("parser")


def test_a_third_party_stands_where_the_built_ins_stand(installed: Path) -> None:
    kinds = {info.name: type(info) for info in load_plugins().plugins}
    assert kinds["good"] is kinds["json-ir"]
    with pytest.raises(UnknownName):
        load_plugins(blocked=["json-ir"]).create("parser", "json")


# Events ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", EVENTS)
def test_silence_is_free(event: str) -> None:
    registry = registry_with(parsers=[upper()])
    assert not registry.listens(event)
    assert event_caller(registry) is None
    argument = {"callwright_run_finished": lambda run: None}.get(event, lambda: None)
    registry.add(plugin(**{event.removeprefix("callwright_"): argument}), name="listening")
    assert registry.listens(event)


SESSION = SimpleNamespace(call=lambda tool, arguments: cw.Outcome("ok", (tool, arguments)))
CALL = cw.Call(0, "buy", {"x": 1})


def called(*hooks: Callable[..., Any], session: Any = SESSION) -> cw.Outcome:
    registry = Registry()
    for number, hook in enumerate(hooks):
        registry.add(SimpleNamespace(callwright_tool_call=hook), name=f"p{number}")
    caller = event_caller(registry)
    assert caller is not None
    return caller(session, CALL, dict(CALL.arguments))


def test_a_wrapper_sees_calls_and_outcomes() -> None:
    log: list[Any] = []

    @cw.hookimpl(wrapper=True)
    def audit(session: Any, call: cw.Call, arguments: dict[str, Any]) -> Any:
        log.append(("before", call.tool, arguments))
        outcome = yield
        log.append(("after", outcome.kind))
        return outcome

    assert called(audit) == cw.Outcome("ok", ("buy", {"x": 1}))
    assert log == [("before", "buy", {"x": 1}), ("after", "ok")]
    raising = SimpleNamespace(call=lambda tool, arguments: 1 / 0)
    assert called(audit, session=raising).kind == "execution_error"
    assert log[-1] == ("after", "execution_error"), "a tool's exception is an outcome before a wrapper sees it"


def test_an_outcome_replaces_the_call() -> None:
    @cw.hookimpl
    def cached(call: cw.Call) -> cw.Outcome | None:
        return cw.Outcome("ok", "from the cache") if call.tool == "buy" else None

    @cw.hookimpl
    def indifferent(call: cw.Call) -> None:
        return None

    assert called(cached).value == "from the cache"
    assert called(indifferent).value == ("buy", {"x": 1})


def test_faults_can_be_injected() -> None:
    @cw.hookimpl(wrapper=True)
    def flaky(call: cw.Call) -> Any:
        yield
        raise cw.InfrastructureFailure("injected")

    with pytest.raises(cw.InfrastructureFailure):
        called(flaky)
    registry = Registry()
    registry.add(SimpleNamespace(callwright_tool_call=flaky), name="flaky")
    environment = FunctionEnvironment("e", [])
    tools = {"buy": cw.ToolSpec("buy")}
    trace = execute(cw.Program((CALL,)), environment, tools, caller=event_caller(registry))
    assert trace.masked == "call 0 buy: infrastructure: injected"


def test_a_bug_in_a_hook_is_not_the_models_fault() -> None:
    @cw.hookimpl(wrapper=True)
    def buggy(call: cw.Call) -> Any:
        yield
        return call.no_such_attribute

    @cw.hookimpl(wrapper=True)
    def forgetful(call: cw.Call) -> Any:
        yield

    with pytest.raises(PluginError, match=r"plugin .*: its hook callwright_tool_call raised AttributeError"):
        called(buggy)
    with pytest.raises(PluginError, match="a callwright_tool_call hook gave None for a call; it must give an Outcome"):
        called(forgetful)


def test_hook_calls_can_be_traced() -> None:
    lines: list[str] = []
    registry = registry_with(run_finished=lambda run: None, training_step=lambda metrics: 1 / 0)
    registry.trace(lines.append)
    registry.hook.callwright_run_finished(run="r")
    with pytest.raises(PluginError, match="plugin 'mine': its hook callwright_training_step raised ZeroDivisionError"):
        registry.hook.callwright_training_step(metrics={"loss": 1.0, "long": "x" * 200})
    assert lines[0] == "hook callwright_run_finished(run='r') -> 1 implementation(s)"
    assert lines[1] == "hook callwright_run_finished returned []"
    assert lines[2].startswith("hook callwright_training_step(metrics={'loss': 1.0, 'long': 'xxx")
    assert len(lines[2]) < 200
    assert "callwright_training_step raised ZeroDivisionError: division by zero" in lines[3]
    assert len(lines) == 4


# Faults of plugins ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", sorted(set(EVENTS) - {"callwright_tool_call"}))
@pytest.mark.parametrize("fault", [ValueError("event"), SystemExit(0)])
def test_an_event_hook_that_raises_is_named_with_its_plugin(event: str, fault: BaseException) -> None:
    def hook() -> None:
        raise fault

    registry = registry_with(**{event.removeprefix("callwright_"): hook})
    said = rf"plugin 'mine': its hook {event} raised {type(fault).__name__}: {fault}\. This is a bug of the plugin"
    given = {"task": None, "messages": [], "attempt": None, "reward": None, "metrics": {}, "run": None, "folder": None}
    with pytest.raises(PluginError, match=said):
        getattr(registry.hook, event)(**given)


def test_what_a_hook_raises_on_purpose_stays_what_it_is() -> None:
    def hook() -> None:
        raise DataError("the disk of the audit is full")

    with pytest.raises(DataError, match="the disk of the audit is full"):
        registry_with(run_finished=hook).hook.callwright_run_finished(run=None)


def test_the_plugin_whose_hook_raised_is_named_and_not_the_one_around_it() -> None:
    @cw.hookimpl(wrapper=True)
    def around() -> Any:
        return (yield)

    def inner() -> None:
        raise KeyError("k")

    registry = Registry()
    registry.add(SimpleNamespace(callwright_run_finished=cw.hookimpl(inner)), name="inner")
    registry.add(SimpleNamespace(callwright_run_finished=around), name="around")
    with pytest.raises(PluginError, match="plugin 'inner': its hook callwright_run_finished raised KeyError"):
        registry.hook.callwright_run_finished(run=None)


def test_a_registration_hook_that_ends_the_process_is_a_broken_plugin() -> None:
    def leave() -> Any:
        sys.exit(0)

    registry = Registry()
    with pytest.raises(PluginError, match="plugin 'mine': callwright_parsers raised SystemExit: 0"):
        registry.add(SimpleNamespace(callwright_parsers=cw.hookimpl(leave)), name="mine")
    assert registry.plugins == []


def test_nothing_of_a_plugin_stays_whatever_ends_its_registration() -> None:
    def interrupted() -> Any:
        yield upper()
        raise KeyboardInterrupt

    registry = Registry()
    with pytest.raises(KeyboardInterrupt):
        registry.add(SimpleNamespace(callwright_parsers=cw.hookimpl(interrupted)), name="mine")
    assert registry.plugins == []
    assert registry.names("parser") == []


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (KeyError("oops"), "making the parser 'odd' raised KeyError: 'oops'"),
        (SystemExit(3), "making the parser 'odd' raised SystemExit: 3"),
        (None, "what makes the parser 'odd' returned nothing; it must return it"),
    ],
)
def test_a_component_that_cannot_be_made_is_its_plugins_fault(made: BaseException | None, said: str) -> None:
    def odd(size: int = 1) -> None:
        if made is not None:
            raise made

    registry = registry_with(parsers=[cw.Lazy("odd", odd)])
    with pytest.raises(PluginError) as caught:
        registry.create("parser", "odd")
    assert str(caught.value).startswith(f"plugin 'mine': {said}")


@pytest.mark.parametrize(
    ("kind", "made", "said"),
    [
        ("environments", 1, "makes the environment 'odd' returned an int; it must return an Environment"),
        ("samplers", {}, "makes the sampler 'odd' returned a dict; it must return a Sampler"),
        ("toolsets", len, "makes the toolset 'odd' returned a builtin_function_or_method; it must return a sequence"),
        ("corpora", Upper, "makes the corpus 'odd' returned a type; it must return a Corpus"),
    ],
)
def test_a_factory_that_returns_a_value_of_pythons_own_is_named_with_it(kind: str, made: object, said: str) -> None:
    hook = "corpus" if kind == "corpora" else kind[:-1]
    with pytest.raises(PluginError, match=said):
        registry_with(**{kind: [cw.Lazy("odd", lambda: made)]}).create(hook, "odd")


def test_what_a_class_of_somebody_has_is_for_the_checks() -> None:
    assert registry_with(toolsets=[cw.Lazy("none", lambda: ())]).create("toolset", "none") == ()
    made = registry_with(environments=[cw.Lazy("odd", Upper)]).create("environment", "odd")
    assert isinstance(made, Upper)


def test_what_a_factory_says_of_an_option_is_the_users_to_mend() -> None:
    def sized(size: int = 1) -> object:
        if size > 9:
            raise ValueError("size is at most 9")
        raise FileNotFoundError("no data")

    registry = registry_with(parsers=[cw.Lazy("sized", sized)])
    with pytest.raises(cw.UsageError, match="parser 'sized': size is at most 9"):
        registry.create("parser", "sized", size=10)
    with pytest.raises(FileNotFoundError):
        registry.create("parser", "sized", size=2)


def test_an_option_of_the_wrong_type_may_be_the_users_or_the_plugins_slip() -> None:
    def sized(size: int = 1, key: str = "") -> object:
        return size + key  # type: ignore[operator]  # the plugin's own slip

    registry = registry_with(parsers=[cw.Lazy("sized", sized)])
    with pytest.raises(cw.UsageError, match=r"parser 'sized' with size, key: .*int.*str") as caught:
        registry.create("parser", "sized", size=2, key="hidden")
    assert "If the options are right, this is a bug of plugin 'mine'" in str(caught.value)
    assert "hidden" not in str(caught.value)
    with pytest.raises(PluginError, match="plugin 'mine': making the parser 'sized' raised TypeError"):
        registry.create("parser", "sized")


def test_a_plugin_that_registers_a_name_twice_is_told_so() -> None:
    with pytest.raises(NameClash) as caught:
        registry_with(parsers=[upper(), upper()])
    assert str(caught.value) == "plugin 'mine' registers the parser 'upper' twice"


def test_threads_that_ask_at_once_get_one_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one would be dropped at once, with what was made of it and holds it weakly: users of tasks."""
    monkeypatch.setattr(plugins, "_loaded_once", functools.cache(plugins.load_plugins))
    at_once = threading.Barrier(4)

    def asked(_number: int) -> cw.Registry:
        at_once.wait()
        return cw.default_registry()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(asked, range(4)))
    assert all(one is found[0] for one in found)


def test_a_target_that_is_none_names_its_plugin() -> None:
    with pytest.raises(PluginError, match=r"^plugin 'mine': 'odd': the target 'nocolon' is not of the form"):
        registry_with(parsers=lambda: [cw.Lazy("odd", "nocolon")])


def test_a_hook_that_is_spelt_nearly_right_gets_the_one_that_was_meant() -> None:
    said = r"unknown hook 'callwright_parser' in .*\. Did you mean 'callwright_parsers'\?"
    with pytest.raises(PluginError, match=said):
        registry_with(parser=[upper()])


def test_what_a_module_prints_when_it_is_imported_is_not_on_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loud_component.py").write_text('print("imported")\nclass Form:\n    parse = None\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    registry_with(parsers=[cw.Lazy("loud", "loud_component:Form")]).create("parser", "loud")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "imported\n")


def test_what_a_component_prints_in_another_thread_leaves_stdout_where_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two threads that put stdout aside at once, the second would put back what the first had put there."""
    for name in ("loud_one", "loud_two"):
        (folder / f"{name}.py").write_text("print('loaded')\nmake = object()\n", encoding="utf-8")
    seen: list[Any] = []

    def load() -> None:
        cw.Lazy("one", "loud_one:make").load()
        seen.append(sys.stdout)

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    assert seen == [sys.stdout]
    assert capsys.readouterr() == ("loaded\n", "")
    cw.Lazy("two", "loud_two:make").load()
    assert capsys.readouterr() == ("", "loaded\n")
