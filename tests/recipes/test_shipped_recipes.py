"""The shipped recipes: they are all there, load, say what the papers say, build, and the small ones run.

``PAPERS`` is transcribed from the papers (TIER: 4.1, appendices F and G; ToolRL: Tables 8 and 9; Prove: 4.1) and from
the code that TIER and ToolRL released, not from the recipes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs
import pytest

from callwright.errors import MissingExtra, RecipeError
from callwright.pipeline import Pipeline, build_pipeline, create_trainer
from callwright.plugins import Registry, default_registry
from callwright.recipe_file import LoadedRecipe, load_recipe, shipped_recipes
from callwright.training.recipe_run import run_recipe

TIER = {
    "model.path": "Qwen/Qwen3-8B",
    "corpus.name": "depthbench-v1",
    "ir": {"name": "json", "instructions": "paper"},
    "reward.name": "tier",
    "trainer.name": "openrlhf",
    "trainer.steps": 1000,
    "trainer.group": 8,
    "trainer.iterations": 1,
    "trainer.gpus_per_node": 2,
    # of the released code
    "trainer.prompts": 64 // 8,
    "trainer.max_new_tokens": 2048,
    "trainer.learning_rate": 5e-6,
    "trainer.warm_up": 100,
    "trainer.schedule": "cosine",
    "trainer.betas": [0.9, 0.99],
    "trainer.weight_decay": 0.1,
    "trainer.clip_norm": 0.1,
    "trainer.schedule_floor": 0.1,  # ours
}
TABLE_8 = {
    "ir": "toolrl",
    "reward.name": "toolrl",
    "algorithm.name": "grpo",
    "algorithm.ratio": "response",
    "algorithm.std": "population",
    "algorithm.kl_weight": 0.0,
    "trainer.name": "openrlhf",
    "trainer.prompts": 512,
    "trainer.evaluation_batch": 128,
    "trainer.max_prompt_tokens": 2048,
    "trainer.max_new_tokens": 1024,
    "trainer.learning_rate": 1e-6,
    "trainer.mini_batches": 512 // 128,
    "trainer.group": 4,
    "trainer.temperature": 1.0,
    "trainer.gpu_memory": 0.6,
    "trainer.checkpoint_every": 15,
    "trainer.evaluate_every": 5,
    "trainer.steps": 15 * (3920 // 512),
    "trainer.gpus_per_node": 2,
}
TABLE_9 = {
    "ir": "toolrl",
    "reward.name": "toolrl",
    "algorithm.name": "ppo",
    "algorithm.kl_weight": 0.001,
    "trainer.name": "openrlhf",
    "trainer.prompts": 512,
    "trainer.evaluation_batch": 128,
    "trainer.group": 1,
    "trainer.max_prompt_tokens": 1024,
    "trainer.max_new_tokens": 512,
    "trainer.learning_rate": 1e-6,
    "trainer.critic.learning_rate": 1e-5,
    "trainer.critic.head_start": 0,
    "trainer.mini_batches": 512 // 128,
    "trainer.micro_batch": 8,
    "trainer.gpu_memory": 0.3,
    "trainer.checkpoint_every": 15,
    "trainer.evaluate_every": 5,
    "trainer.steps": 15 * (3920 // 512),
    "trainer.gpus_per_node": 2,
}
#: examples/grpo_trainer/run_grpo.sh, verl/trainer/config/ppo_trainer.yaml and the loop of verl/trainer/ppo of ToolRL's
#: released code, which counts steps from 1 and ends when it has counted to 15 * 7.
RELEASED_GRPO = {
    "ir": "toolrl",
    "reward.name": "toolrl-released-default",
    "reward.first_step": 1,
    "algorithm.name": "bn-grpo",
    "algorithm.kl_weight": 0.001,
    "algorithm.kl_in": "reward",
    "algorithm.kl_estimator": "k1",
    "algorithm.std": "group",
    "algorithm.std_epsilon": 1e-6,
    "algorithm.epsilon": 0.2,
    "algorithm.entropy_weight": 0.001,
    "trainer.name": "local",
    "trainer.prompts": 512,
    "trainer.group": 4,
    "trainer.mini_batches": 512 // 128,
    "trainer.iterations": 1,
    "trainer.max_new_tokens": 1024,
    "trainer.temperature": 1.0,
    "trainer.learning_rate": 1e-6,
    "trainer.warm_up": 0,
    "trainer.schedule": "constant",
    "trainer.betas": [0.9, 0.999],
    "trainer.weight_decay": 0.01,
    "trainer.clip_norm": 1.0,
    "trainer.checkpoint_every": 15,
    "trainer.evaluate_every": 5,
    "trainer.evaluation_batch": 128,
    "trainer.steps": 15 * (3920 // 512) - 1,
}
RELEASED_PPO = {
    "ir": "toolrl",
    "reward.name": "toolrl-released-default",
    "reward.first_step": 1,
    "algorithm.name": "ppo",
    "algorithm.kl_weight": 0.001,
    "algorithm.kl_estimator": "k1",
    "algorithm.gamma": 1.0,
    "algorithm.lam": 1.0,
    "algorithm.epsilon": 0.2,
    "algorithm.value_clip": 0.5,
    "algorithm.entropy_weight": 0.001,
    "algorithm.unbiased_std": True,
    "trainer.name": "openrlhf",
    "trainer.prompts": 512,
    "trainer.group": 1,
    "trainer.mini_batches": 512 // 128,
    "trainer.micro_batch": 8 // 2,
    "trainer.iterations": 1,
    "trainer.max_prompt_tokens": 1024,
    "trainer.max_new_tokens": 512,
    "trainer.temperature": 1.0,
    "trainer.learning_rate": 1e-6,
    "trainer.warm_up": 0,
    "trainer.schedule": "constant",
    "trainer.betas": [0.9, 0.999],
    "trainer.weight_decay": 0.01,
    "trainer.clip_norm": 1.0,
    "trainer.critic.learning_rate": 1e-5,
    "trainer.critic.warm_up": 0,
    "trainer.critic.head_start": 0,
    "trainer.critic.weight_decay": 0.01,
    "trainer.checkpoint_every": 15,
    "trainer.evaluate_every": 5,
    "trainer.evaluation_batch": 128,
    "trainer.gpu_memory": 0.3,
    "trainer.gpus_per_node": 2,
    "trainer.steps": 15 * (3920 // 512) - 1,
}
#: Made by callwright synthesize prove-mixture; what is measured on the way is ours.
PROVE_CORPUS = {
    "corpus.name": "tasks",
    "corpus.file": "synthesized/prove-mixture/tasks.jsonl",
    "corpus.test_file": "synthesized/worlds-mini.jsonl",
    "corpus.evaluation": "test",
}
PROVE = {
    **PROVE_CORPUS,
    "reward.name": "prove",
    "reward.alpha": 0.5,
    "reward.beta": 0.5,
    "algorithm.name": "grpo",
    "algorithm.kl_weight": 0.01,
    "turns.user_turns": 5,
    "turns.assistant_turns": 10,
    "turns.total_tokens": 16384,
    "turns.context_tokens": 12384 + 16384,
    "trainer.name": "openrlhf",
    "trainer.prompts": 16,
    "trainer.group": 16,
    "trainer.tensor_parallel": 2,
    "trainer.max_prompt_tokens": 12384,
    "trainer.steps": 350,
    "trainer.gpus_per_node": 8,
}
TOOLRL_MODELS = {
    "qwen2.5-1.5b": "Qwen/Qwen2.5-1.5B-Instruct",
    "qwen2.5-3b": "Qwen/Qwen2.5-3B-Instruct",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "llama3.2-3b": "meta-llama/Llama-3.2-3B-Instruct",
}
PROVE_RATES = {
    "qwen3-4b": ("Qwen/Qwen3-4B-Instruct-2507", 1e-6),
    "qwen3-8b": ("Qwen/Qwen3-8B", 5e-8),
    "qwen2.5-7b": ("Qwen/Qwen2.5-7B-Instruct", 3e-7),
    "granite-4.1-8b": ("ibm-granite/granite-4.1-8b-instruct", 3e-7),
}
#: TIER: 4.1, 4.4, 4.5 and Table 3. ToolRL: Table 8, appendix B and the names of Tables 1 to 3. Neither prints more.
TIER_SFT = {
    "ir": {"name": "json", "instructions": "paper"},
    "reward.name": "tier",
    "corpus.name": "depthbench-v1",
    "model.path": "models/Qwen3-8B",
    "trainer.name": "sft",
    "trainer.source": "references",
    "trainer.max_tokens": 12288,
}
TOOLRL_SFT = {
    "ir": "toolrl",
    "reward.name": "toolrl",
    "corpus.name": "toolrl-rows",
    "trainer.name": "sft",
    "trainer.evaluation_batch": 128,
    "trainer.max_new_tokens": 1024,
}
TOOLRL_SFT_FILES = {"sft400": "rlla_4k_raw/rlla_sft.json", "sft4k": "rlla_4k/train.parquet"}
CPU_KEPT = {
    "tier-cpu": {"reward.name": "tier", "algorithm.name": "bn-grpo", "algorithm.kl_weight": 0.04, "trainer.group": 8},
    "toolrl-cpu": {
        "reward.name": "toolrl",
        "algorithm.name": "grpo",
        "algorithm.ratio": "response",
        "algorithm.std": "population",
        "algorithm.kl_weight": 0.0,
        "trainer.group": 4,
    },
    "toolrl-cpu-ppo": {
        "reward.name": "toolrl",
        "algorithm.name": "ppo",
        "algorithm.kl_weight": 0.001,
        "trainer.group": 1,
    },
    "prove-cpu": {
        "reward.name": "prove",
        "algorithm.name": "grpo",
        "algorithm.kl_weight": 0.01,
        "trainer.prompts": 16,
        "trainer.group": 16,
    },
}
PAPERS: dict[str, dict[str, Any]] = {
    "tier-qwen3-8b": {**TIER, "algorithm.name": "bn-grpo", "algorithm.kl_weight": 0.04, "algorithm.std_epsilon": 1e-4},
    # appendix E: "the same reward formulation, optimizer, and rollout budget as in Section 4"
    **{
        f"tier-qwen3-8b-{name}": {
            **TIER,
            "corpus.name": "schema-echo",
            "corpus.mismatched": "keep",
            "algorithm.name": "bn-grpo",
            "algorithm.kl_weight": 0.04,
        }
        for name in ("toolace", "xlam")
    },
    "tier-qwen3-8b-grpo": {**TIER, "algorithm.name": "grpo", "algorithm.kl_weight": 0.04},
    # appendix F: hyperparameters, rollout budget and reward as in the main experiment
    "tier-qwen3-8b-dapo": {
        **TIER,
        "algorithm.name": "dapo",
        "algorithm.kl_weight": 0.04,
        "algorithm.dynamic_sampling": False,
        "algorithm.overlong_buffer": 0,
    },
    "tier-qwen3-8b-dapo-yu": {
        **TIER,
        "algorithm.name": "dapo",
        "algorithm.kl_weight": 0.0,
        "algorithm.epsilon_high": 0.28,
        "algorithm.dynamic_sampling": True,
    },
    "tier-qwen3-8b-released": {
        **TIER,
        "reward.name": "tier-released",
        "algorithm.name": "bn-grpo",
        "algorithm.kl_weight": 0.0,
        "trainer.schedule_floor": 0.0,
    },
    **{f"toolrl-{name}": {**TABLE_8, "model.path": path} for name, path in TOOLRL_MODELS.items()},
    **{f"toolrl-{name}-ppo": {**TABLE_9, "model.path": path} for name, path in TOOLRL_MODELS.items()},
    **{f"toolrl-{name}-released": {**RELEASED_GRPO, "model.path": path} for name, path in TOOLRL_MODELS.items()},
    **{f"toolrl-{name}-ppo-released": {**RELEASED_PPO, "model.path": path} for name, path in TOOLRL_MODELS.items()},
    **{
        f"prove-{name}": {**PROVE, "model.path": path, "trainer.learning_rate": rate}
        for name, (path, rate) in PROVE_RATES.items()
    },
    "tier-qwen3-8b-sft": TIER_SFT,
    "prove-qwen3-4b-sft": {
        **PROVE_CORPUS,
        "ir": "hermes",
        "reward.name": "prove",
        "turns.assistant_turns": 10,
        "turns.user_turns": 5,
        "trainer.name": "sft",
        "trainer.source": "references",
        "trainer.epochs": 3,
    },
    **{
        f"toolrl-{name}-{data}": {**TOOLRL_SFT, "corpus.file": file, "model.path": f"models/{path.partition('/')[2]}"}
        for name, path in TOOLRL_MODELS.items()
        for data, file in TOOLRL_SFT_FILES.items()
    },
    "tier-cpu-sft": {"reward.name": "tier", "trainer.name": "sft", "trainer.source": "references"},
    **CPU_KEPT,
    "tier-gpu": CPU_KEPT["tier-cpu"],
    "toolrl-gpu": CPU_KEPT["toolrl-cpu"],
    "tier-qwen3-0.6b-lora": {**CPU_KEPT["tier-cpu"], "model.path": "Qwen/Qwen3-0.6B", "trainer.name": "trl"},
    "toolrl-qwen2.5-1.5b-lora": {
        "reward.name": "toolrl",
        "corpus.name": "toolrl-rows",
        "algorithm.name": "grpo",
        "algorithm.std": "population",
        "algorithm.kl_weight": 0.0,
        "model.path": "Qwen/Qwen2.5-1.5B-Instruct",
        "trainer.name": "trl",
        "trainer.group": 4,
        "trainer.max_new_tokens": 1024,
    },
    "prove-qwen3-1.7b-lora": {
        **PROVE_CORPUS,
        "reward.name": "prove",
        "reward.alpha": 0.5,
        "reward.beta": 0.5,
        "algorithm.name": "grpo",
        "algorithm.kl_weight": 0.01,
        "turns.user_turns": 5,
        "turns.assistant_turns": 10,
        "model.path": "Qwen/Qwen3-1.7B",
        "trainer.name": "trl",
    },
    "prove-gpu": {
        "reward.name": "prove",
        "algorithm.name": "grpo",
        "algorithm.kl_weight": 0.01,
        "turns.user_turns": 5,
        "turns.assistant_turns": 10,
    },
}
#: prompt and completion together
CONTEXTS = {
    "tier-qwen3-8b": 12288,
    "tier-qwen3-8b-grpo": 12288,
    "tier-qwen3-8b-toolace": 12288,
    "tier-qwen3-8b-xlam": 12288,
    "tier-qwen3-8b-dapo": 12288,
    "tier-qwen3-8b-dapo-yu": 12288,
    "tier-qwen3-8b-released": 4096,
}
#: Reads a file of the user's, which a test does not have.
NEEDS_DATA = {
    *(name for name in PAPERS if name.startswith("toolrl-") and "gpu" not in name and "cpu" not in name),
    "tier-qwen3-8b-toolace",
    "tier-qwen3-8b-xlam",
    *(name for name in PAPERS if name.startswith(("prove-qwen", "prove-granite"))),
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return default_registry()


def value(loaded: LoadedRecipe, dotted: str) -> Any:
    found: Any = loaded.data
    for key in dotted.split("."):
        found = found[key]
    return found


def test_no_recipe_is_missing_or_unknown() -> None:
    assert set(shipped_recipes()) == {*PAPERS, "synthesised-cpu", "tier-mini", "village-cpu"}


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_it_loads_by_its_name_and_says_what_it_is(name: str) -> None:
    loaded = load_recipe(name)
    assert loaded.recipe.name == name
    assert loaded.recipe.description.endswith(".")
    assert loaded.text.startswith("# ")


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_numbers_are_those_of_the_papers(name: str) -> None:
    loaded = load_recipe(name)
    assert {key: value(loaded, key) for key in PAPERS[name]} == PAPERS[name]
    if name in CONTEXTS:
        trainer = loaded.recipe.trainer.options
        assert trainer["max_prompt_tokens"] + trainer["max_new_tokens"] == CONTEXTS[name]


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name in PAPERS
        if name.endswith("-released")
        or (load_recipe(name).recipe.trainer.name in ("openrlhf", "sft") and "cpu" not in name)
    ),
)
def test_every_number_of_a_paper_recipe_has_a_source(name: str) -> None:
    """Each numeric line says where it is from, or stands below one that says so for those that follow."""
    covered = ("as all of the optimiser", "from here on assumed", "as the rest but", "as all that follows")
    spoken = False
    for line in load_recipe(name).text.splitlines():
        key, sign, rest = line.partition(" = ")
        if not sign or line.startswith("#"):
            spoken = spoken and bool(line)
            continue
        number, _, comment = rest.partition("#")
        spoken = spoken or any(words in comment for words in covered)
        if number.strip()[0] in "0123456789[" and key != "seed":
            assert comment.strip() or spoken, f"{name}: {line}"


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_it_builds(name: str, registry: Registry) -> None:
    loaded = load_recipe(name)
    recipe = loaded.recipe
    names = {"corpus": recipe.corpus.name, "algorithm": recipe.algorithm.name, "trainer": recipe.trainer.name}
    for kind, wanted in names.items():
        if wanted not in registry.names(kind):
            pytest.skip(f"there is no {kind} named {wanted!r} yet")
    create_trainer(loaded, registry)
    if name in NEEDS_DATA:
        pytest.skip("needs a file that is not shipped")
    pipeline = build_pipeline(loaded, registry)
    assert pipeline.algorithm is not None
    assert pipeline.algorithm.kl_weight == recipe.algorithm.options.get("kl_weight", pipeline.algorithm.kl_weight)
    task = pipeline.corpus[recipe.corpus.train][0]
    assert pipeline.messages(task)


def test_dapo_differs_from_the_main_experiment_of_tier_by_its_objective_alone() -> None:
    """Appendix F: "The only variable across conditions is the optimization objective." """
    main, dapo, yu = (load_recipe(f"tier-qwen3-8b{suffix}").data for suffix in ("", "-dapo", "-dapo-yu"))
    own = {"name", "description", "algorithm"}
    assert {key: part for key, part in dapo.items() if key not in own} == {
        key: part for key, part in main.items() if key not in own
    }
    assert {key: part for key, part in yu.items() if key not in own} == {
        key: part for key, part in main.items() if key not in own
    }
    assert dapo["algorithm"]["kl_weight"] == main["algorithm"]["kl_weight"]
    assert dapo["algorithm"]["std_epsilon"] == main["algorithm"]["std_epsilon"]


def test_a_falling_schedule_says_where_it_ends() -> None:
    for name in shipped_recipes():
        options = load_recipe(name).recipe.trainer.options
        if options.get("schedule", "constant") != "constant":
            assert "schedule_floor" in options, name


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_the_algorithm_can_be_changed_by_its_name(name: str, registry: Registry) -> None:
    """What the new one has not is refused by file, line and name; with the whole table replaced nothing is."""
    small = ["corpus=toolworld-mini-v1", "ir=json", "reward=tier"]  # ToolRL's rows are not ours
    loaded = load_recipe(name, overrides=[*small, "algorithm.name=dapo"])
    known = {field.name for field in attrs.fields(registry.spec("algorithm", "dapo").load()) if field.init}
    if set(loaded.recipe.algorithm.options) <= known:
        assert_dapo(build_pipeline(loaded, registry))
    else:
        with pytest.raises(RecipeError, match=rf"{name}\.toml:\d+: There is no option of the algorithm 'dapo' named"):
            build_pipeline(loaded, registry)
    assert_dapo(build_pipeline(load_recipe(name, overrides=[*small, "algorithm=dapo"]), registry))


def assert_dapo(pipeline: Pipeline) -> None:
    assert pipeline.algorithm is not None
    assert pipeline.algorithm.name == "dapo"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CPU_KEPT))
def test_the_twin_on_the_cpu_runs_to_its_end(name: str, tmp_path: Path, registry: Registry) -> None:
    short = [
        "trainer.steps=2",
        "trainer.evaluate_every=1",
        "trainer.evaluation_tasks=2",
        "trainer.prompts=4",
        "trainer.warm_start.steps=10",
        "trainer.warm_start.count=60",
        "corpus.train_size=60",
        "corpus.evaluation_size=2",
    ]
    try:
        run = run_recipe(name, output=tmp_path / "run", overrides=short, registry=registry)
    except MissingExtra as error:
        pytest.skip(str(error))
    metrics = run.rows("metrics.jsonl")
    loaded = load_recipe(name, short)
    expected = loaded.recipe.trainer.options["prompts"] * loaded.recipe.trainer.options["group"]
    assert [row["step"] for row in metrics] == [1, 2]
    for row in metrics:
        assert row["rollouts"] == expected
        assert row["masked"] == 0
        assert math.isfinite(row["loss"])
        assert row["gradient_norm"] >= 0
    evaluation = run.read_json("evaluation.json")
    assert [part["step"] for part in evaluation["during"]] == [1]
    assert evaluation["after"]["masked"] == 0
    assert (run.checkpoints / "final" / "config.json").is_file()


@pytest.mark.parametrize("name", [f"toolrl-{name}-{data}" for name in TOOLRL_MODELS for data in TOOLRL_SFT_FILES])
def test_the_supervised_runs_of_toolrl_differ_in_model_and_data_alone(name: str) -> None:
    """And the commands at their head begin its SFT+GRPO and SFT+PPO: recipes that exist, with another model."""
    first, given = load_recipe("toolrl-qwen2.5-1.5b-sft400").data, load_recipe(name)
    for table in ("reward", "trainer", "ir", "seed"):
        assert given.data[table] == first[table]
    commands = [line[2:].split() for line in (given.text or "").splitlines() if line.startswith("#   callwright run ")]
    assert len(commands) == 2
    for command, algorithm in zip(commands, ("grpo", "ppo"), strict=True):
        assert command[3] == "--set"
        started = load_recipe(command[2], command[4:])
        assert started.recipe.algorithm.name == algorithm
        assert started.recipe.model == {"path": f"runs/{name.rpartition('-')[2]}/checkpoints/final"}
        assert command[2] in PAPERS
        assert {**started.data, "model": {}} == {**load_recipe(command[2]).data, "model": {}}


@pytest.mark.slow
def test_the_supervised_twin_on_the_cpu_runs_to_its_end(tmp_path: Path, registry: Registry) -> None:
    short = ["corpus.train_size=60", "corpus.evaluation_size=2", "trainer.epochs=1", "trainer.evaluate_every=2"]
    try:
        run = run_recipe("tier-cpu-sft", output=tmp_path / "run", overrides=short, registry=registry)
    except MissingExtra as error:
        pytest.skip(str(error))
    metrics = run.rows("metrics.jsonl")
    assert [row["demonstrations"] for row in metrics] == [24, 24, 12]
    assert metrics[-1]["loss"] < metrics[0]["loss"]
    assert run.read_json("evaluation.json")["after"]["n"] == 14
    assert (run.checkpoints / "final" / "config.json").is_file()


def test_recipes_of_papers_keep_the_prompts_of_the_paper_and_evaluations_teach_what_they_allow() -> None:
    from callwright.plugins import default_registry

    registry = default_registry()
    paper = registry.create("parser", "json", instructions="paper").instructions()
    for name in ("tier-qwen3-8b", "tier-gpu", "toolrl-gpu"):
        pipeline = build_pipeline(load_recipe(name), with_algorithm=False)
        assert pipeline.messages(pipeline.corpus["validation"][0])[0].text.startswith(f"{paper}\n\n# Tools\n")
    several = build_pipeline(load_recipe("prove-gpu"), with_algorithm=False)
    told = several.messages(several.corpus["validation"][0])[0].text
    assert told.startswith(registry.create("parser", "hermes", instructions="paper").instructions())
    single = Pipeline("depthbench-v1")
    assert "You answer once" in single.messages(single.corpus["validation"][0])[0].text
