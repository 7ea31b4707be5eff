"""Every registered component passes the conformance kit, the built-in ones like anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import MissingExtra
from callwright.plugins import KINDS, load_plugins
from callwright.testing import check_component, checks_for

REGISTRY = cw.default_registry()
#: Components that read the official files, and the folder of them that they read.
NEED_DATA = {
    "recorded": "depthbench_official",
    "depthbench-official": "depthbench_official",
    "api-bank": "apibank",
    "bamboogle": "bamboogle",
    "bfcl-v3": "bfcl/v3_git",
    "bfcl-v4": "bfcl/v4_package",
    "nestful": "nestful",
    "t-eval": "teval",
    "when2call": "when2call",
}
#: What else they are given.
GIVEN = {"t-eval": {"embedder": "trigrams"}}
#: Components that cannot be made in a test of the core, and why.
SKIPPED = {
    ("sampler", "local-model"): "needs a model directory (option 'model'); its own tests make one",
    ("sampler", "agent"): "needs an agent (option 'command'); its own tests have one",
    ("sampler", "openai"): "needs a server; its own tests start one",
    ("sampler", "vllm"): "needs a model directory and vLLM; its own tests have stand-ins and, where it is, vLLM itself",
    ("corpus", "schema-echo"): "needs a file of ToolACE or xLAM; its own tests write some",
    ("environment", "schema-echo"): "needs a file of schemas; its own tests write some",
    ("corpus", "tasks"): "needs a file of tasks; its own tests write some",
    ("corpus", "compact-tasks"): "needs a file of tasks; its own tests write some",
    ("corpus", "toolrl-rows"): "needs a file of rows; its own tests write one",
    ("teacher", "openai"): "needs a server; its own tests start one",
    ("teacher", "replayed"): "needs a file of replies; its own tests write one",
    ("benchmark", "bfcl-multi-turn"): "needs BFCL's files; its own tests write some",
    ("benchmark", "tau2-airline"): "needs tau2's source; its own tests have a small one",
    ("benchmark", "tau2-retail"): "needs tau2's source; its own tests have a small one",
    ("benchmark", "tau2-telecom"): "needs tau2's source; its own tests have a small one",
    ("environment", "mcp"): "needs a server (option 'command' or 'url'); its own tests start some",
    ("environment", "awm"): "needs a world and its files (options 'world' and 'data'); its own tests write some",
    ("environment", "openenv"): "needs a server (option 'url') or a class; its own tests have both",
    ("corpus", "awm"): "needs a folder of tasks; its own tests write some",
    ("corpus", "general-agent"): "needs a folder of tasks; its own tests write some",
    ("corpus", "openenv"): "needs a server (option 'url') or a class; its own tests start some",
}
#: Known failures: (kind, component) -> check -> reason.
EXPECTED: dict[tuple[str, str], dict[str, str]] = {
    ("corpus", "depthbench-official"): {
        "check_sound": "the released benchmark has tasks, such as 305, whose last call their answer does not need"
    },
}


def is_of_the_untouched(check: Any) -> bool:
    """Whether it asks something of a component that nothing has touched yet; each has a test with a new one below."""
    return "pickles_before_use" in check.name


def cases() -> Iterator[Any]:
    """One test for each check of each component."""
    for kind, lazy in REGISTRY.components():
        known = EXPECTED.get((kind, lazy.name), {})
        for check in checks_for(kind):
            if is_of_the_untouched(check):  # which these are not, after the other checks
                continue
            marks = [pytest.mark.xfail(reason=known[check.name], strict=True)] if check.name in known else []
            yield pytest.param(kind, lazy.name, check, id=f"{kind}-{lazy.name}-{check}", marks=marks)


def options_of(name: str, data: Path) -> dict[str, Any]:
    if name not in NEED_DATA:
        return {}
    folder = data / NEED_DATA[name]
    if not folder.is_dir():
        pytest.skip(f"{name} reads official files, which are not here (CALLWRIGHT_DATA)")
    return {"data": str(folder), **GIVEN.get(name, {})}


_MADE: dict[tuple[str, str], Any] = {}


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Any:
    def made(kind: str, name: str, *, anew: bool = False) -> Any:
        if (kind, name) in SKIPPED:
            pytest.skip(SKIPPED[kind, name])
        options = options_of(name, request.getfixturevalue("official_data")) if name in NEED_DATA else {}
        if anew or (kind, name) not in _MADE:
            registry = load_plugins() if anew else REGISTRY
            try:
                component = registry.spec(kind, name).make_stand_in()
                if component is None:
                    component = registry.create(kind, name, **options)
            except MissingExtra as error:
                pytest.skip(str(error))
            if anew:
                return component
            _MADE[kind, name] = component
        return _MADE[kind, name]

    return made


def test_no_plugin_is_broken() -> None:
    assert [info.error for info in REGISTRY.plugins if info.error] == []


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the synthesizer keeps what it has explored."""
    return tmp_path_factory.mktemp("knowledge")


@pytest.mark.parametrize(("kind", "name", "check"), list(cases()))
def test_conformance(
    kind: str, name: str, check: Any, make: Any, knowledge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    component = make(kind, name)
    # Exploring is most of each check. One does it anew each time it plans, and the others read what the first has kept.
    if (kind, name) == ("synthesizer", "grounded") and check.name != "check_plan":
        monkeypatch.setattr(component, "cache", knowledge)
    check(component)


PICKLED = [(kind, lazy.name) for kind, lazy in REGISTRY.components() if any(map(is_of_the_untouched, checks_for(kind)))]


@pytest.mark.parametrize(("kind", "name"), PICKLED)
def test_what_nothing_has_touched_yet_pickles(kind: str, name: str, make: Any) -> None:
    (check,) = filter(is_of_the_untouched, checks_for(kind))
    check(make(kind, name, anew=True))


#: A component of a reward goes by its own name in the scores of a recipe, so only other kinds have the registered one.
UNNAMED = ("toolset", "command", "reward component")
NAMED = [(kind, lazy.name) for kind, lazy in REGISTRY.components() if kind not in UNNAMED]


@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_a_component_has_its_registered_name(kind: str, name: str, make: Any) -> None:
    component = make(kind, name)
    if name != "recorded":  # has the name of what was recorded
        assert component.name == name


CORPORA = [(kind, name) for kind, name in NAMED if kind == "corpus"]


@pytest.mark.parametrize(("kind", "name"), CORPORA)
def test_two_instances_of_a_corpus_hold_the_same_tasks(kind: str, name: str, make: Any) -> None:
    (check,) = (
        check for check in checks_for(kind, again=make(kind, name, anew=True)) if check.name == "check_repeatable"
    )
    check(make(kind, name))


@pytest.mark.parametrize(("kind", "name"), CORPORA)
def test_the_environment_of_a_corpus_conforms_in_its_scenarios(kind: str, name: str, make: Any) -> None:
    corpus = make(kind, name)
    tasks = [corpus[split][0] for split, count in corpus.splits.items() if count]
    calls = [(call.tool, dict(call.arguments)) for task in tasks if task.program for call in task.program.calls[:1]]
    check_component(
        "environment",
        corpus.environment,
        scenarios=sorted({task.scenario for task in tasks}),
        calls=calls,
    )


@pytest.mark.parametrize("name", REGISTRY.names("parser"))
def test_every_reward_scores_completions_of_every_form(name: str, make: Any) -> None:
    """One component of each class that is registered or part of a registered recipe."""
    found = [make("reward component", component) for component in REGISTRY.names("reward component")]
    for recipe in REGISTRY.names("reward recipe"):
        found += [term.component for term in make("reward recipe", recipe).terms]
    parser = make("parser", name)
    (check,) = (c for c in checks_for("reward component", parser=parser) if c.name == "check_never_raises")
    for component in {type(component): component for component in found}.values():
        check(component)


def test_every_kind_has_checks() -> None:
    for kind in KINDS:
        names = [check.name for check in checks_for(kind)]
        assert len(set(names)) == len(names) > 0
        assert all(check.summary.endswith(".") for check in checks_for(kind))
