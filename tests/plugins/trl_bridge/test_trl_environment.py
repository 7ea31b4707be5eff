"""Tools as methods: the schemas that transformers reads off them, and sessions a rollout."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import Callable
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.environments import ClockPolicy
from callwright.errors import UnknownName
from callwright.tools.reading import without_marks
from callwright_plugins import trl_bridge
from callwright_plugins.trl_bridge.signatures import tool_method

transformers_utils = pytest.importorskip("transformers.utils", reason="needs the extra 'trl'")
CORPUS = cw.corpus("toolworld-mini-v1", train_size=24, evaluation_size=2)


def shown(spec: cw.ToolSpec) -> dict[str, Any]:
    """What transformers tells a model of a tool's method."""
    method = tool_method(spec, lambda self, tool, arguments: "")

    class Owner:
        pass

    setattr(Owner, spec.name, method)
    function: dict[str, Any] = transformers_utils.get_json_schema(getattr(Owner(), spec.name))["function"]
    return function


def bare(schema: Any) -> Any:
    """A schema without descriptions and titles, and without the order of a list of types."""
    if isinstance(schema, dict):
        return {
            key: sorted(value) if key == "type" and isinstance(value, list) else bare(value)
            for key, value in schema.items()
            if key not in ("description", "title") or not isinstance(value, str)
        }
    return [bare(one) for one in schema] if isinstance(schema, list) else schema


SCALAR = st.sampled_from([{"type": kind} for kind in ("string", "integer", "number", "boolean")])
ENUM = st.lists(st.text("abc ", min_size=1, max_size=5), min_size=1, max_size=3, unique=True).map(
    lambda values: {"type": "string", "enum": values}
)
SCHEMA = st.recursive(
    SCALAR | ENUM | st.just({}),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda values: {"type": "object", "additionalProperties": values}, inner)
        | st.just({"type": "array"})
        | st.just({"type": "object"})
    ),
    max_leaves=4,
)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z_]{0,6}", fullmatch=True).filter(lambda key: key.isidentifier() and key != "self"),
        st.tuples(SCHEMA, st.booleans(), st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)),
        max_size=4,
    ).filter(lambda found: not any(__import__("keyword").iskeyword(key) for key in found) and "return" not in found)
)
def test_what_type_hints_can_say_comes_back_the_same(found: dict[str, tuple[Any, bool, str]]) -> None:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {key: {**schema, "description": said} for key, (schema, _, said) in found.items()},
    }
    required = [key for key, (_, must, _) in found.items() if must]
    if required:
        parameters["required"] = required
    function = shown(cw.ToolSpec("look", "Look something up.", parameters))
    assert function["name"] == "look"
    assert function["description"] == "Look something up."
    assert bare(function["parameters"]) == bare(parameters)


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        ({"type": ["string", "integer"]}, {"type": ["integer", "string"]}),
        ({"enum": [1, "a"]}, {"type": ["integer", "string"], "enum": [1, "a"]}),
        ({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}, None),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": "integer", "minimum": 1}, {"type": "integer"}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}),
    ],
)
def test_what_type_hints_cannot_say_is_in_the_description(schema: dict[str, Any], becomes: Any) -> None:
    function = shown(cw.ToolSpec("look", "", {"type": "object", "properties": {"x": {**schema, "description": "D"}}}))
    made = dict(function["parameters"]["properties"]["x"])
    said = made.pop("description")
    assert made == (schema if becomes is None else becomes)
    same = bare(made) == bare(schema) or (becomes or {}).get("enum") == schema.get("enum", 0)
    assert said == ("D" if same else f"D (JSON Schema: {json.dumps(schema, sort_keys=True)})")


@pytest.mark.parametrize("said", ["Args: none", "Returns: a\nlist", "pick (choices: [1, 2])", "", "a: b\n  c: d"])
def test_descriptions_do_not_break_the_docstring(said: str) -> None:
    spec = cw.ToolSpec(
        "look", said, {"type": "object", "properties": {"a": {"type": "string", "description": said}, "b": {}}}
    )
    parameters = shown(spec)["parameters"]
    assert list(parameters["properties"]) == ["a", "b"]
    assert "enum" not in parameters["properties"]["a"]
    for word in said.split():
        assert word.rstrip(":") in parameters["properties"]["a"]["description"]


def environments() -> list[str]:
    """Those that need no options: the others are made of somebody's data or server."""
    registry = cw.default_registry()
    found = []
    for name in registry.names("environment"):
        with contextlib.suppress(cw.UsageError):
            registry.create("environment", name)
            found.append(name)
    return found


@pytest.mark.parametrize("name", environments())
def test_every_tool_of_every_environment_is_a_method_that_shows_its_schema(name: str) -> None:
    """Names, types and what is required come back, and everything else stands in a description."""
    made = trl_bridge.environment_factory(name)
    instance = made()
    public = {key for key, _ in inspect.getmembers(made, inspect.isfunction) if not key.startswith("_")} - {"reset"}
    specs = {key: spec for key, spec in cw.environment(name).tools.items() if not spec.hidden}
    assert public == specs.keys()
    for key, spec in specs.items():
        function = transformers_utils.get_json_schema(getattr(instance, key))["function"]
        wanted = without_marks(spec.parameters)
        assert list(function["parameters"]["properties"]) == list(wanted.get("properties", {}))
        assert function["parameters"].get("required", []) == [
            one for one in wanted.get("properties", {}) if one in wanted.get("required", [])
        ]
        assert function["description"].split()[:3] == (spec.description or key.replace("_", " ")).split()[:3]
        for one, schema in wanted.get("properties", {}).items():
            found = function["parameters"]["properties"][one]
            if f"(JSON Schema: {json.dumps(bare_top(schema), ensure_ascii=False, sort_keys=True)})" in found[
                "description"
            ].replace("Returns :", "Returns:"):
                continue
            assert bare(found) == bare(nullable(schema)), f"{key}.{one}"


def nullable(schema: Any) -> Any:
    """What may be null, by default, as transformers says it."""
    if schema.get("default", 0) is None and {"type": "null"} in schema.get("anyOf", ()):
        (inner,) = (one for one in schema["anyOf"] if one != {"type": "null"})
        return {**inner, "nullable": True}
    return schema


def bare_top(schema: Any) -> Any:
    return {key: value for key, value in schema.items() if key not in ("description", "title")}


def test_names_that_trl_has_itself_are_refused() -> None:
    @cw.tool
    def reset(hard: bool) -> str:
        """Begin again."""
        return "done"

    @cw.tool
    def look(at: str) -> str:
        """Look at something."""
        return at

    environment = cw.environment("mine", tools=[reset, look])
    with pytest.raises(cw.UsageError, match="cannot offer a tool named 'reset'"):
        trl_bridge.environment_factory(environment)
    instance = trl_bridge.environment_factory(environment, tools=["look"])()
    instance.reset()
    assert json.loads(instance.look(at="stars")) == {"id": 0, "name": "look", "result": "stars"}
    with pytest.raises(UnknownName, match="tool of mine"):
        trl_bridge.environment_factory(environment, tools=["lock"])
    odd = cw.ToolSpec("odd", "", {"type": "object", "properties": {"from": {"type": "string"}}})
    with pytest.raises(cw.UsageError, match="no parameter named 'from'"):
        tool_method(odd, lambda self, tool, arguments: "")


def test_sessions_are_apart_and_a_reset_begins_again() -> None:
    @cw.tool
    def add(counts: dict[str, int], /, what: Literal["a", "b"], times: int = 1) -> int:
        """Count something."""
        counts[what] = counts.get(what, 0) + times
        return counts[what]

    environment = cw.environment("counter", tools=[add], state=lambda scenario, seed: {"a": seed})
    made = trl_bridge.environment_factory(environment)
    one, other = made(), made()
    with pytest.raises(cw.UsageError, match="call reset"):
        one.add(what="a")
    one.reset(prompt="x")
    other.reset(seed=10)
    results = [one.add(what="a", times=3), other.add(what="a"), one.add(what="a"), one.add(what="c")]
    values = [json.loads(result) for result in results]
    assert [value.get("result") for value in values] == [3, 11, 4, None]
    assert values[3]["error"]["code"] == "value"
    assert [value["id"] for value in values] == [0, 0, 1, 2]
    one.reset(prompt="x")
    assert json.loads(one.add(what="a"))["result"] == 1


def test_an_environment_may_own_the_reward() -> None:
    made = trl_bridge.environment_factory(CORPUS, "tier")
    instance = made()
    assert instance.get_reward() is None
    task = next(task for task in CORPUS["train"] if task.depth == 1 and task.returns == "one")
    assert task.program is not None
    call = task.program.calls[0]
    instance.reset(task_id=task.id, prompt="", depth=1)
    getattr(instance, call.tool)(**call.arguments)
    assert instance.get_reward() == 1.0
    instance.reset(task_id=task.id)
    assert instance.get_reward() == cw.reward("tier").score(task, cw.parser("json").render(cw.Program())).total
    with pytest.raises(cw.UsageError, match="give environment_factory a corpus"):
        trl_bridge.environment_factory("banking", "tier")
    with pytest.raises(cw.UsageError, match="no column 'task_id'"):
        instance.reset(prompt="")
    with pytest.raises(UnknownName, match="corpus or environment"):
        trl_bridge.environment_factory("bankin")


@pytest.mark.parametrize("seed", [0, 1])
def test_a_task_fixes_its_world(seed: int, vault: Any) -> None:
    made = trl_bridge.environment_factory(vault, "tier", seed=seed)
    instance = made()
    for task in [*vault["train"], *vault["evaluation"]]:
        instance.reset(task_id=task.id)
        assert json.loads(instance.turn(by=3))["result"] == task.answer.values[0]
        assert instance.get_reward() == 1.0
        assert vault.opened == [task.seed], "one session, which the reward does not open again"
        vault.opened.clear()


class Shop:
    """A corpus of one task in an environment with a memory, whose goal is stated or shown by a program."""

    name, splits = "shop", {"train": 1}
    calls = (("add_to_cart", {"variant_id": "V00001"}), ("add_to_cart", {"variant_id": "V00003"}))

    def __init__(self, **more: Any) -> None:
        self.environment = cw.environment("shopping")
        program = cw.Program(tuple(cw.Call(at, tool, given) for at, (tool, given) in enumerate(self.calls)))
        self.only = cw.Task(
            "one", "Buy both.", self.environment.tools, cw.Answer((0,)), self.environment, program=program, **more
        )

    def __getitem__(self, split: str) -> list[cw.Task]:
        return [self.only]

    def task(self, task_id: str) -> cw.Task:
        return self.only


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"clock": ClockPolicy(call=600)},
        {"facts": {"goal": {"changed": [{"table": "cart_items"}, {"table": "carts", "must": False}]}}},
    ],
    ids=["program", "clock", "goal"],
)
def test_work_in_another_order_comes_to_the_same(more: dict[str, Any]) -> None:
    instance = trl_bridge.environment_factory(Shop(**more), "state")()
    for calls, reward in ((Shop.calls, 1.0), (Shop.calls[::-1], 1.0), (Shop.calls[:0], 0.0)):
        instance.reset(task_id="one")
        for tool, arguments in calls:
            getattr(instance, tool)(**arguments)
        assert instance.get_reward() == reward


def test_a_rollout_whose_machinery_failed_is_masked() -> None:
    class Down:
        name, pure, tools = "down", True, CORPUS.environment.tools

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            raise cw.InfrastructureFailure("the server is down")

    class Corpus:
        name, environment, splits = "down", Down(), CORPUS.splits

        def __getitem__(self, split: str) -> Any:
            return CORPUS[split]

        def task(self, task_id: str) -> cw.Task:
            from attrs import evolve

            return evolve(CORPUS.task(task_id), environment=self.environment)

    instance = trl_bridge.environment_factory(Corpus(), "tier")()
    instance.reset(task_id="train-3")
    tool = next(iter(CORPUS.task("train-3").tools))
    getattr(instance, tool)()
    with pytest.raises(cw.UsageError, match="the server is down"):
        getattr(instance, tool)()
    assert instance.get_reward() is None
    function = trl_bridge.reward("tier", corpus=CORPUS, ir="hermes")
    said = [[{"role": "assistant", "content": "I could not."}]]
    assert function([""], said, None, task_id=["train-3"], environments=[instance]) == [None]


def test_trl_executes_the_methods(small_corpus: Any, tokenizer: Any, make_trainer: Callable[..., Any]) -> None:
    """TRL's own loop of tool calls: a scripted model calls, our environment answers, the reward sees the episode."""
    task = next(task for task in small_corpus["train"] if task.depth == 1 and task.returns == "one")
    assert task.program is not None
    call = task.program.calls[0]
    made = trl_bridge.environment_factory(small_corpus)
    function = trl_bridge.reward("tier", corpus=small_corpus, ir="hermes")
    whole = trl_bridge.dataset(small_corpus, ir=None)
    data = whole.select([whole["task_id"][:].index(task.id)])
    said = json.dumps({"name": call.tool, "arguments": dict(call.arguments)})
    template = (
        "{% if tools %}<|begin|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|end|>\n{% endif %}"
        "{% for m in messages %}<|begin|>{{ m['role'] }}\n{{ m['content'] }}"
        "{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"
        "<|end|>\n{% endfor %}{% if add_generation_prompt %}<|begin|>assistant\n{% endif %}"
    )
    reading = {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|begin|>assistant\n",
        "fields": {
            "tool_calls": {
                "open": "<tool_call>",
                "close_pattern": r"</tool_call>\s*",
                "repeats": True,
                "content": "json",
                "transform": {"type": "function", "function": "{content}"},
            },
            "content": {"close_pattern": r"<\|end\|>\s*", "content": "text"},
        },
    }
    before = tokenizer.chat_template
    tokenizer.chat_template, tokenizer.response_template = template, reading
    try:
        trainer = make_trainer(
            function, data, environment_factory=made, options={"max_steps": 1, "max_completion_length": 400}
        )
        turns = [f"<tool_call>\n{said}\n</tool_call>", "Done."]
        replies = [[*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id] for text in turns]

        def scripted(prompt_ids: Any, *arguments: Any, **options: Any) -> Any:
            return [list(replies.pop(0))] * len(prompt_ids) if len(replies) else None, None

        trainer._generate_single_turn = scripted
        trainer.model.config.max_position_embeddings = 100_000
        inputs = [dict(data[0]) for _ in range(2)]
        trainer.num_generations = 2
        trainer.model.train()
        heard: list[Any] = []
        inner = function.rewards
        trainer.reward_funcs[0] = Heard(function, heard)
        trainer._generate_and_score_completions(inputs)
        completions, columns = heard[0]
        assert [message["role"] for message in completions[0]] == ["assistant", "tool", "assistant"]
        result = json.loads(completions[0][1]["content"])
        outcome = small_corpus.environment.open(task.scenario, 0).call(call.tool, dict(call.arguments))
        assert result == {"id": 0, "name": call.tool, "result": outcome.value}
        assert [one.total for one in inner([""] * 2, completions, None, **columns)] == [1.0, 1.0]
    finally:
        tokenizer.chat_template = before
        del tokenizer.response_template


class Heard:
    """A reward function that remembers what it was asked."""

    def __init__(self, inner: Any, heard: list[Any]) -> None:
        self.inner, self.heard, self.__name__ = inner, heard, inner.__name__

    def __call__(self, prompts: Any, completions: Any, completion_ids: Any, **columns: Any) -> Any:
        self.heard.append((completions, columns))
        return self.inner(prompts, completions, completion_ids, **columns)


def test_trls_own_loop_knows_no_users() -> None:
    class Talking:
        name, environment, splits = CORPUS.name, CORPUS.environment, CORPUS.splits

        def __getitem__(self, split: str) -> Any:
            raise NotImplementedError

        def task(self, task_id: str) -> Any:
            return attrs.evolve(CORPUS.task(task_id), user=cw.UserSpec("replayed"))

    instance = trl_bridge.environment_factory(Talking())()
    with pytest.raises(cw.UsageError, match=r"has a user.*TRL leads the conversation here.*rollout_func"):
        instance.reset(task_id=CORPUS["train"][0].id)
