"""Rewards and data of the TRL bridge, without a trainer."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import DataError, RecipeError, UnknownName
from callwright.language.wording import native_instructions
from callwright.walk.limits import SINGLE_TURN
from callwright.walk.prompt import build_messages
from callwright_plugins import trl_bridge

CORPUS = cw.corpus("toolworld-mini-v1", train_size=24, evaluation_size=2)
FORM = cw.parser("json")
TASKS = list(CORPUS["train"][:6])
GOLD = [FORM.render(task.program) for task in TASKS if task.program is not None]
IDS = [task.id for task in TASKS]


@given(st.lists(st.tuples(st.integers(0, 5), st.one_of(st.sampled_from(GOLD), st.text(max_size=40))), max_size=5))
def test_plain_and_conversational_completions_earn_what_the_recipe_gives(drawn: list[tuple[int, str]]) -> None:
    function, recipe = trl_bridge.reward("tier", corpus=CORPUS), cw.reward("tier")
    expected = [recipe.score(TASKS[number], text, ir="json").total for number, text in drawn]
    ids = [IDS[number] for number, _ in drawn]
    texts = [text for _, text in drawn]
    assert function(texts, texts, None, task_id=ids) == expected
    spoken = [[{"role": "assistant", "content": text}] for text in texts]
    assert function(texts, spoken, None, task_id=ids) == expected


def test_names_objects_and_pipelines_mean_the_same() -> None:
    by_name = trl_bridge.reward("tier", corpus="toolworld-mini-v1", ir="json")
    by_object = trl_bridge.reward(cw.reward("tier"), corpus=cw.corpus("toolworld-mini-v1"), ir=FORM)
    by_recipe = trl_bridge.reward("tier-mini")
    pipeline = trl_bridge.reward(by_recipe.pipeline)
    texts = [*GOLD, "no"]
    ids = [*IDS, IDS[0]]
    results = [function(texts, texts, None, task_id=ids) for function in (by_name, by_object, by_recipe, pipeline)]
    assert results[0] == [1.0] * 6 + [0.0]
    assert results.count(results[0]) == 4


def test_columns_of_another_length_and_completions_that_are_none_are_told_of() -> None:
    function = trl_bridge.reward("tier", corpus=CORPUS)
    with pytest.raises(cw.UsageError, match="the column 'task_id' has 1 rows for 2 completions"):
        function(["", ""], ["", ""], None, task_id=IDS[:1])
    with pytest.raises(DataError, match="a completion is a text or a list of messages, not None"):
        function([""], [None], None, task_id=IDS[:1])


@pytest.mark.parametrize("completion", [[], [{"role": "user", "content": "and?"}]])
def test_a_completion_in_which_nobody_says_anything_is_no_completion(completion: Any) -> None:
    """It earned what an answer without calls earns, which may be everything."""
    reward = trl_bridge.reward("tier", corpus="toolworld-mini-v1")
    with pytest.raises(DataError, match=r"^task 'train-0': the completion holds no message of the assistant, so there"):
        reward([""], [completion], task_id=["train-0"])


def test_component_means_and_masks_are_logged() -> None:
    logged: dict[str, float] = {}
    function = trl_bridge.reward("tier", corpus=CORPUS)
    wrong = '<think>\n\n</think>\n<tool_call return="one">\n{"0": {"Nothing": {}}}\n</tool_call>'
    function(["", ""], [GOLD[3], wrong], None, task_id=[IDS[3], IDS[3]], log_metric=logged.__setitem__)
    rewards = function.rewards(["", ""], [GOLD[3], wrong], None, task_id=[IDS[3], IDS[3]])
    for name in rewards[0].scores:
        assert logged[f"tier/{name}"] == sum(one.scores[name].score.value for one in rewards) / 2
    assert logged["tier/masked"] == 0.0


def test_a_lost_sample_gets_none_and_counts_as_masked() -> None:
    class Down:
        name, pure, tools = "down", True, CORPUS.environment.tools

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            raise cw.InfrastructureFailure("the server is down")

    from attrs import evolve

    from callwright.pipeline import open_pipeline

    function = trl_bridge.reward(evolve(open_pipeline("tier", CORPUS), environment=Down()))
    logged: dict[str, float] = {}
    given = function(["", ""], [GOLD[3], "nothing"], None, task_id=[IDS[3], IDS[3]], log_metric=logged.__setitem__)
    assert given == [None, 0.0]
    assert logged["tier/masked"] == 0.5


def test_a_schedule_hears_of_the_trainers_step() -> None:
    class Late(cw.RewardComponent):
        name, low, high = "late", 0.0, 1.0

        def score(self, attempt: cw.Attempt) -> cw.Score:
            assert attempt.progress is not None
            share = attempt.progress.step / attempt.progress.total_steps
            return cw.Score(share, evidence=() if share >= 1 else (cw.Evidence("early", "it is early"),))

    recipe = cw.RewardRecipe("late", (cw.Term(Late()),))
    function = trl_bridge.reward(recipe, corpus=CORPUS)
    state = SimpleNamespace(global_step=3, max_steps=12)
    assert function([""], ["x"], None, task_id=[IDS[0]], trainer_state=state) == [0.25]
    unbounded = SimpleNamespace(global_step=3, max_steps=-1)
    assert function([""], ["x"], None, task_id=[IDS[0]], trainer_state=unbounded) == [1.0]


def test_calls_that_trl_took_apart_are_turns_of_one_session() -> None:
    """What a model wrote in the form of its template, TRL hands on as tool calls; the episode is the same."""
    hermes = cw.parser("hermes")
    task = next(task for task in CORPUS["train"] if task.depth == 1 and task.returns == "one")
    assert task.program is not None
    call = task.program.calls[0]
    arguments = dict(call.arguments)
    taken_apart = [
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "One call will do.",
            "tool_calls": [{"type": "function", "function": {"name": call.tool, "arguments": arguments}}],
        },
        {"role": "tool", "name": call.tool, "content": "{}"},
        {"role": "assistant", "content": "There it is."},
    ]
    program = cw.Program((cw.Call(0, call.tool, arguments),), "one", "One call will do.")
    episode = cw.Attempt(task, [hermes.render(program), "There it is."], hermes)
    expected = cw.reward("tier").score_attempt(episode)
    function = trl_bridge.reward("tier", corpus=CORPUS, ir="hermes")
    assert function.rewards([""], [taken_apart], None, task_id=[task.id])[0].to_json() == expected.to_json()
    assert expected.total == 1.0
    # Text that was not taken apart, because it is no call, fails as it should.
    broken = [[{"role": "assistant", "content": '<tool_call>\n{"name": oops\n</tool_call>'}]]
    assert function([""], broken, None, task_id=[task.id]) == [0.0]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_task_fixes_its_world(seed: int, vault: Any) -> None:
    """Whatever the reward's seed is, sessions open with the task's: of texts, and of calls that were taken apart."""
    tasks = [*vault["train"], *vault["evaluation"]]
    ids, seeds = [task.id for task in tasks], [task.seed for task in tasks]
    texts = [FORM.render(task.program) for task in tasks]
    function = trl_bridge.reward("tier", corpus=vault, seed=seed)
    assert function([""] * 3, texts, None, task_id=ids) == [1.0] * 3
    assert vault.opened == seeds
    call = {"type": "function", "function": {"name": "turn", "arguments": {"by": 3}}}
    said = [[{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "{}"}]] * 3
    native = trl_bridge.reward("tier", corpus=vault, ir="hermes", seed=seed)
    assert native([""] * 3, said, None, task_id=ids) == [1.0] * 3
    assert vault.opened == seeds * 2


@pytest.mark.parametrize("arguments", ['{"a": 1', "[1]", None, [1], {"a": float("nan")}])
def test_odd_arguments_of_a_model_never_raise(arguments: Any) -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "FindHotels", "arguments": arguments}}]}
    for form in ("hermes", "json", "toolrl"):
        function = trl_bridge.reward("tier", corpus=CORPUS, ir=form)
        total = function([""], [[message]], None, task_id=[IDS[0]])[0]
        assert total is not None
        assert total < 1


def test_with_a_tokenizer_completions_are_read_from_their_ids(tokenizer: Any) -> None:
    """TRL's text has lost the special tokens; the ids have not."""
    function = trl_bridge.reward("tier", corpus=CORPUS, tokenizer=tokenizer)
    gold = tokenizer.encode(GOLD[3], add_special_tokens=False)
    ids = [[*gold, tokenizer.eos_token_id], [*gold, tokenizer.bos_token_id, tokenizer.eos_token_id]]
    assert function(["", ""], [GOLD[3], GOLD[3]], ids, task_id=[IDS[3]] * 2)[0] == 1.0
    with_special = function.rewards(["", ""], [GOLD[3], GOLD[3]], ids, task_id=[IDS[3]] * 2)[1]
    assert with_special.to_json() == cw.reward("tier").score(TASKS[3], GOLD[3] + tokenizer.bos_token).to_json()
    with pytest.raises(cw.UsageError, match="no completion_ids"):
        function([""], [GOLD[3]], None, task_id=[IDS[3]])


def test_what_is_missing_is_said() -> None:
    function = trl_bridge.reward("tier", corpus=CORPUS)
    with pytest.raises(cw.UsageError, match="no column 'task_id'"):
        function([""], [""], None)
    with pytest.raises(UnknownName, match="task of toolworld"):
        function([""], [""], None, task_id=["train-99"])
    with pytest.raises(DataError, match="not 7"):
        function([""], [""], None, task_id=[7])
    with pytest.raises(cw.UsageError, match="pass corpus="):
        trl_bridge.reward("tier")
    with pytest.raises(cw.UsageError, match="needs a corpus"):
        trl_bridge.reward(cw.reward("tier"))
    with pytest.raises(RecipeError, match="no such file"):
        trl_bridge.reward("tire-mini")
    with pytest.raises(UnknownName, match="Did you mean 'tier'"):
        trl_bridge.reward("tirr", corpus=CORPUS)
    with pytest.raises(cw.UsageError, match="'chat' or 'text'"):
        trl_bridge.dataset(CORPUS, form="chatty")
    with pytest.raises(cw.UsageError, match="limit is -1"):
        trl_bridge.dataset(CORPUS, limit=-1)
    with pytest.raises(cw.UsageError, match="no compact prompts"):
        trl_bridge.dataset("depthbench-v1", "validation", form="text", limit=1)


def test_data_has_the_prompts_of_the_walk() -> None:
    chat = trl_bridge.dataset(CORPUS, limit=3)
    assert chat.column_names == ["prompt", "task_id", "depth", "structure"]
    for row, task in zip(chat, TASKS, strict=False):
        shown = [{"role": one["role"], "content": one["content"]} for one in row["prompt"]]
        assert shown == [message.to_openai() for message in build_messages(task, FORM, limits=SINGLE_TURN)]
        assert row["prompt"][-1]["task_id"] == row["task_id"] == task.id
        assert (row["depth"], row["structure"]) == (task.depth, task.structure)
    text = trl_bridge.dataset(CORPUS, form="text", limit=3)
    assert text["prompt"][:] == [CORPUS.prompt_text(task) for task in TASKS[:3]]
    bare = trl_bridge.dataset(CORPUS, ir=None, limit=2)
    for row, task in zip(bare, TASKS, strict=False):
        shown = [(one["role"], one["content"]) for one in row["prompt"]]
        assert shown == [("system", native_instructions()), ("user", task.query)]
        assert row["prompt"][-1]["task_id"] == task.id
    whole = trl_bridge.dataset("toolworld-mini-v1", "evaluation")
    assert len(whole) == cw.corpus("toolworld-mini-v1").splits["evaluation"]


@pytest.mark.parametrize(
    ("hidden", "call"),
    [
        ("datasets", "dataset('toolworld-mini-v1')"),
        ("trl", "rollout_func('tier-mini')"),
        ("torch", "rollout_func('tier-mini')"),
    ],
)
def test_without_trl_the_package_to_install_is_named(hidden: str, call: str) -> None:
    code = (
        f"import sys; sys.modules[{hidden!r}] = None\n"
        "from callwright.errors import MissingExtra\nfrom callwright_plugins import trl_bridge\n"
        f"try: trl_bridge.{call}\nexcept MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip().endswith("pip install 'callwright[trl]'"), done.stderr


def test_scoring_imports_nothing_heavy() -> None:
    code = (
        "import sys; from callwright_plugins import trl_bridge\n"
        "print(trl_bridge.reward('tier-mini')([''], ['no'], None, task_id=['train-3']))\n"
        "trl_bridge.environment_factory('banking')()\n"
        "print([name for name in ('torch', 'trl', 'datasets', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["[0.0]", "[]"], done.stderr


@pytest.mark.parametrize(("policy", "total"), [(None, 0.0), ("as_is", 1.0), ("overlong", 1.0), ("mask", None)])
def test_ids_without_an_end_were_cut_off(tokenizer: Any, policy: Any, total: float | None) -> None:
    recipe = cw.reward("tier") if policy is None else cw.reward("tier", truncated=policy)
    knowing = trl_bridge.reward(recipe, corpus=CORPUS, tokenizer=tokenizer)
    text = GOLD[3] + "and so on " * 260
    ids = tokenizer.encode(text, add_special_tokens=False)
    both, tasks = [ids, [*ids, tokenizer.eos_token_id]], [IDS[3]] * 2
    assert knowing(["", ""], [text, text], both, task_id=tasks) == [total, 1.0]
    spoken = [[{"role": "assistant", "content": text}]] * 2
    assert knowing(["", ""], spoken, both, task_id=tasks) == [total, 1.0]
    several = [[{"role": "assistant", "content": GOLD[3]}, {"role": "assistant", "content": GOLD[0]}]] * 2
    whole = trl_bridge.reward(cw.reward("tier", truncated="as_is"), corpus=CORPUS)(["", ""], several, task_id=tasks)
    earned = knowing(["", ""], several, both, task_id=tasks)
    assert earned == [whole[0] if total == 1.0 else total, whole[1]]
    ignorant = trl_bridge.reward(recipe, corpus=CORPUS)
    assert ignorant(["", ""], [text, text], both, task_id=tasks) == [1.0, 1.0], "without a tokenizer nobody can know"


def test_what_being_cut_off_took_is_a_mean_over_all_samples(tokenizer: Any) -> None:
    logged: dict[str, float] = {}
    ids = tokenizer.encode(GOLD[3], add_special_tokens=False)
    function = trl_bridge.reward("tier", corpus=CORPUS, tokenizer=tokenizer)
    both = [ids, [*ids, tokenizer.eos_token_id]]
    function(["", ""], [GOLD[3]] * 2, both, task_id=[IDS[3]] * 2, log_metric=logged.__setitem__)
    assert logged["tier/truncated"] == -0.5
