"""What is wrong with a recipe is told all at once, with file and line, and without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from callwright.errors import RecipeError
from callwright.plugins import default_registry
from callwright.recipe_file import parse_recipe
from callwright.training.recipe_run import prepare

GOOD = """name = "r"
corpus = "toolworld-mini-v1"

[trainer]
name = "sft"
limit = 5

[model.tiny]
width = 64
"""


def told(text: str) -> list[str]:
    with pytest.raises(RecipeError) as raised:
        prepare(parse_recipe(text, "r.toml"), default_registry())
    return str(raised.value).splitlines()


def places(text: str) -> list[str]:
    return [line.partition(": ")[0] for line in told(text)]


def test_mistakes_of_several_components_are_told_together() -> None:
    bad = GOOD.replace('corpus = "', 'ir = "jsn"\ncorpus = "').replace("limit = 5", "limt = 5\nbatch = 0")
    assert places(bad + '[reward]\nname = "tierr"\n') == ["r.toml:13", "r.toml:2", "r.toml:8", "r.toml:7"]


def test_the_table_of_the_model_is_read_before_training() -> None:
    lines = told(GOOD.replace("width = 64", "widht = 64\nlayers = 0"))
    assert sorted(line.partition(": ")[0] for line in lines) == ["r.toml:10", "r.toml:9"]
    assert any("Did you mean 'width'?" in line for line in lines)


@pytest.mark.parametrize("trainer", ["sft", "local"])
def test_the_table_of_the_model_is_read_where_the_options_of_the_trainer_are_wrong(trainer: str) -> None:
    bad = GOOD.replace("sft", trainer).replace("limit = 5", "limt = 5").replace("width = 64", "widht = 64")
    assert places(bad) == ["r.toml:6", "r.toml:9"]
    assert places(bad.replace('name = "local"', 'name = "localy"').replace('"sft"', '"sfft"')) == ["r.toml:5"]


@pytest.mark.parametrize(("content", "said"), [("", "it has no config.json"), ("recipe.toml", "that has not ended")])
def test_a_model_folder_that_is_none_is_found(tmp_path: Path, content: str, said: str) -> None:
    if content:
        (tmp_path / content).touch()
    (line,) = told(GOOD.partition("[model")[0] + f'[model]\npath = "{tmp_path}"\n')
    assert line.startswith(f"r.toml:9: {tmp_path} is ")
    assert said in line


def test_depths_that_the_split_lacks_are_found() -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    local = GOOD.replace('"sft"', '"local"').replace(
        "limit = 5", "depths = [1, 98]\ncurriculum = [{until = 1, depths = [99]}]"
    )
    lines = told(local)
    assert [line.partition(": ")[0] for line in lines] == ["r.toml:6", "r.toml:7"]
    assert "'depths' asks for depth 98, but the split to train on only has 0, 1" in lines[0]
    assert "'curriculum' asks for depth 99" in lines[1]


def test_an_agent_without_turns_is_refused() -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    agent = GOOD.replace('"sft"', '"local"').replace("limit = 5", 'agent = "python a.py"')
    (line,) = told(agent)
    assert line.startswith("r.toml:6: without a table [turns] the model answers an agent once")
    prepare(parse_recipe(agent + "[turns]\nassistant_turns = 1\n"), default_registry())


def test_a_good_recipe_is_made() -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    pipeline, trainer = prepare(parse_recipe(GOOD), default_registry())
    assert (pipeline.corpus.name, trainer.name) == ("toolworld-mini-v1", "sft")


def test_options_of_the_trainers_are_read_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from callwright.plugins import default_registry\n"
        "from callwright.errors import UsageError, MissingExtra\n"
        "registry = default_registry()\n"
        "for name in ('local', 'sft'):\n"
        "    trainer = registry.create('trainer', name)\n"
        "    try: registry.create('trainer', name, stepz=3)\n"
        "    except UsageError as error: assert 'Did you mean' in str(error)\n"
        "    else: assert False\n"
        "    try: trainer.train(None, None)\n"
        "    except MissingExtra as error: assert 'callwright[train]' in str(error)\n"
        "    else: assert False\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
