"""Pipeline recipes: values and shorthands, overrides, errors with file and line, TOML written and read back."""

from __future__ import annotations

import datetime
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RecipeError
from callwright.recipe_file import (
    PipelineRecipe,
    find_line,
    find_recipe,
    load_recipe,
    override_words,
    parse_recipe,
    shipped_recipes,
    write_toml,
)
from callwright.training.recipe_run import default_folder

TEXT = """\
# a recipe
name = "small"
seed = 7

[corpus]
name = "toolworld-mini-v1"
train = "train"
size = 100                    # an option of the corpus

[algorithm]
name = "grpo"
kl_weight = 0.1

[reward]
name = "tier"

[model]
path = "some/model"
"""


# Reading --------------------------------------------------------------------------------------------------------------


def test_a_recipe_names_components_and_their_options() -> None:
    recipe = parse_recipe(TEXT).recipe
    assert (recipe.name, recipe.seed, recipe.corpus.name, recipe.corpus.train) == (
        "small",
        7,
        "toolworld-mini-v1",
        "train",
    )
    assert recipe.corpus.options == {"size": 100}
    assert recipe.algorithm.options == {"kl_weight": 0.1}
    assert recipe.reward.options == {}
    assert recipe.model == {"path": "some/model"}
    assert (recipe.ir.name, recipe.trainer.name, recipe.sampler, recipe.time_limit) == ("json", "local", None, None)


def test_shorthands() -> None:
    recipe = parse_recipe('corpus = "c"\nreward = "simple"\nmodel = "m"\nsampler = "gold"\ntime_limit = 5').recipe
    assert (recipe.corpus.name, recipe.corpus.evaluation, recipe.reward.name) == ("c", "evaluation", "simple")
    assert recipe.model == {"path": "m"}
    assert recipe.sampler is not None
    assert recipe.sampler.name == "gold"
    assert recipe.time_limit == 5.0


def test_every_shipped_recipe_is_one() -> None:
    shipped = shipped_recipes()
    assert "tier-mini" in shipped
    for name, path in shipped.items():
        assert load_recipe(name).recipe == load_recipe(path).recipe
        assert Path(load_recipe(f"recipes/{name}.toml").source).resolve() == path.resolve()


# Overrides ------------------------------------------------------------------------------------------------------------


def data(*overrides: str, text: str = TEXT) -> dict[str, Any]:
    return parse_recipe(text, overrides=overrides).data


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("seed=8", ("seed",), 8),
        ("name=other", ("name",), "other"),
        ('name="quoted = 1"', ("name",), "quoted = 1"),
        ("description=Qwen/Qwen3-8B", ("description",), "Qwen/Qwen3-8B"),
        ("description=", ("description",), ""),
        ("algorithm.kl_weight=0.04", ("algorithm", "kl_weight"), 0.04),
        ("algorithm.name=dapo", ("algorithm",), {"name": "dapo", "kl_weight": 0.1}),
        ("algorithm=dapo", ("algorithm",), "dapo"),
        ("corpus.mix=[1, 2]", ("corpus", "mix"), [1, 2]),
        ("trainer.steps=5", ("trainer",), {"steps": 5}),
        ("trainer.warm.steps=5", ("trainer", "warm"), {"steps": 5}),
        (" model . path = x", ("model", "path"), "x"),
        ("model.dtype=float32", ("model",), {"path": "some/model", "dtype": "float32"}),
        ("corpus.flag=true", ("corpus", "flag"), True),
    ],
)
def test_an_override_sets_one_value(override: str, path: tuple[str, ...], value: Any) -> None:
    found: Any = data(override, text=TEXT if "trainer" not in override else f"{TEXT}\n[trainer]\nname='local'\n")
    if path == ("trainer",):
        value = {"name": "local", **value}
    for part in path:
        found = found[part]
    assert found == value


def test_an_override_of_a_shorthand_keeps_its_name() -> None:
    text = 'corpus = "c"\nmodel = "m"\nalgorithm = "grpo"'
    assert data("corpus.size=3", text=text)["corpus"] == {"name": "c", "size": 3}
    assert data("algorithm.kl_weight=1.0", text=text)["algorithm"] == {"name": "grpo", "kl_weight": 1.0}
    assert parse_recipe(text, overrides=["model.dtype=x"]).recipe.model == {"path": "m", "dtype": "x"}


def test_the_last_override_wins() -> None:
    assert data("seed=1", "seed=2")["seed"] == 2
    assert data("algorithm.kl_weight=9", "algorithm=dapo")["algorithm"] == "dapo"
    assert data("algorithm=dapo", "algorithm.kl_weight=9")["algorithm"] == {"name": "dapo", "kl_weight": 9}


@pytest.mark.parametrize("override", ["seed", "=3", "a..b=1", "", ".=1"])
def test_an_override_without_key_or_value(override: str) -> None:
    with pytest.raises(RecipeError, match=r"^--set .*expected KEY=VALUE"):
        data(override)


def test_an_override_cannot_go_into_a_value() -> None:
    with pytest.raises(RecipeError, match=r"^--set seed\.a=1: 'seed' is a value, not a table"):
        data("seed.a=1")


def test_a_key_can_be_left_out() -> None:
    assert "kl_weight" not in data("-algorithm.kl_weight")["algorithm"]
    assert "algorithm" not in data("-algorithm")
    assert data("-algorithm", "algorithm.name=dapo")["algorithm"] == {"name": "dapo"}
    changed = parse_recipe(TEXT, overrides=["-model"])
    assert changed.recipe.model == {}
    assert parse_recipe(changed.effective_text()).recipe == changed.recipe
    assert "[model" not in changed.effective_text()


@pytest.mark.parametrize("key", ["modl", "model.pth", "seed.a", "", "."])
def test_a_key_that_is_not_there_cannot_be_left_out(key: str) -> None:
    with pytest.raises(RecipeError, match=rf"^--unset {key}: There is no key in the recipe named"):
        data(f"-{key}")


def test_what_is_missing_then_names_what_left_it_out() -> None:
    with pytest.raises(RecipeError, match=r"^--unset corpus\.name: corpus\.name is missing$"):
        data("-corpus.name")


def test_overrides_as_the_words_of_a_command_line() -> None:
    words = override_words(["seed=1", "-model", "-x=3"])
    assert words == ["--set", "seed=1", "--unset", "model", "--set", "-x=3"]


def test_the_effective_text_says_what_was_run() -> None:
    assert parse_recipe(TEXT).effective_text() == TEXT
    changed = parse_recipe(TEXT, overrides=["algorithm=dapo", "corpus.size=5"])
    again = parse_recipe(changed.effective_text())
    assert again.recipe == changed.recipe
    assert again.overrides == {}


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ("seed = 7", 'seed = "seven"', "3", "seed: Input should be a valid integer"),
        ("seed = 7", 'seed = "7"', "3", "seed: Input should be a valid integer"),
        ("seed = 7", "seed = 7.0", "3", "seed: Input should be a valid integer"),
        ("seed = 7", "seed = true", "3", "seed: Input should be a valid integer"),
        ("seed = 7", "sede = 7", "3", "There is no recipe key named 'sede'. Did you mean 'seed'?"),
        ("seed = 7", "time_limit = 0", "3", "time_limit: Input should be greater than 0"),
        ("seed = 7", "seed = ", "3", "not valid TOML"),
        ('name = "tier"', "name = 3", "15", "reward.name: Input should be a valid string"),
        ('name = "tier"', "weight = 3", "14", "reward.name is missing"),
        ('train = "train"', "train = 1", "7", "corpus.train: Input should be a valid string"),
        ("seed = 7", "ir = 3", "3", "ir must be the name of a component, or a table with its 'name'"),
        ("seed = 7", "turns = 3", "3", "turns must be a table"),
        ("[algorithm]", "[algorithm", "10", "not valid TOML"),
        ("[reward]", "[rewards]", "14", "There is no recipe key named 'rewards'. Did you mean 'reward'?"),
        ("[corpus]", "[korpus]", "", "corpus is missing"),
        ('path = "some/model"', 'path = "some/model', "18", "not valid TOML"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, old: str, new: str, where: str, message: str) -> None:
    path = tmp_path / "r.toml"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    lines = str(caught.value).splitlines()
    head = f"{path}:{where}: " if where else f"{path}: "
    assert any(line.startswith(head) and message in line for line in lines), lines


def test_a_mark_before_the_text_is_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(TEXT, encoding="utf-8-sig")
    assert load_recipe(path).effective_text() == TEXT


def test_every_error_is_listed_once() -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe('seed = "x"\nsede = 1\ncorpus = 3\n', "r.toml")
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in sorted(lines)] == ["r.toml:1", "r.toml:2", "r.toml:3"]


def test_an_option_of_the_usual_component_can_be_set() -> None:
    loaded = parse_recipe('corpus = "toolworld-mini-v1"', overrides=["trainer.steps=5", "reward.penalty=0.1", "ir.a=1"])
    recipe = loaded.recipe
    assert (recipe.trainer.name, recipe.trainer.options) == ("local", {"steps": 5})
    assert (recipe.reward.name, recipe.ir.name) == ("tier", "json")
    assert parse_recipe(loaded.effective_text()).recipe == recipe
    assert parse_recipe('corpus = "c"', overrides=["trainer.name=trl"]).recipe.trainer.name == "trl"
    with pytest.raises(RecipeError, match=r"sampler\.name is missing"):
        parse_recipe('corpus = "c"', overrides=["sampler.p=1"])


def test_one_text_is_no_list_of_overrides() -> None:
    with pytest.raises(RecipeError, match=r"a list of texts, such as \['seed=3'\]"):
        parse_recipe(TEXT, overrides="seed=3")


def test_an_override_is_blamed_for_what_it_set() -> None:
    for override, key in (("seed=x", "seed=x"), ("reward.name=3", "reward.name=3"), ("sede=1", "sede=1")):
        with pytest.raises(RecipeError, match=f"^--set {key}: "):
            data(override)
    loaded = parse_recipe(TEXT, "r.toml", ["algorithm=dapo", "corpus.name=x"])
    assert loaded.where("algorithm", "name") == "--set algorithm=dapo"
    assert loaded.where("corpus", "name") == "--set corpus.name=x"
    assert loaded.where("corpus", "size") == "r.toml:8"
    assert loaded.where("corpus", "nothing") == "r.toml:5"
    assert loaded.where("corpus") == "r.toml:5 with --set corpus.name=x", "what is wrong with a table may be either"
    assert loaded.where("nothing") == "r.toml"
    assert str(loaded.error("is odd", "reward", "name")) == "r.toml:15: is odd"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"there is no such file.*no shipped recipe named 'tier-mimi'. Did you mean"):
        load_recipe("tier-mimi")
    with pytest.raises(RecipeError, match=r"nowhere.toml: there is no such file"):
        load_recipe(tmp_path / "nowhere.toml")
    with pytest.raises(RecipeError, match="is a folder"):
        load_recipe(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(RecipeError, match=r"latin.toml: cannot be read: 'utf-8' codec"):
        load_recipe(tmp_path / "latin.toml")
    assert find_recipe(str(tmp_path / "latin.toml")) == tmp_path / "latin.toml"


# Lines ----------------------------------------------------------------------------------------------------------------


def test_lines_are_found_however_a_key_is_written() -> None:
    text = 'a.b = 1\n"c d" = 2\n[ x . "y z" ]\nk = 3\nl.m = 4\n[x."y z".deep]\n\'q\' = 5\ntable = { inner = 6 }\n'
    expected = {
        ("a", "b"): 1,
        ("a",): 1,
        ("c d",): 2,
        ("x", "y z"): 3,
        ("x",): 3,
        ("x", "y z", "k"): 4,
        ("x", "y z", "l", "m"): 5,
        ("x", "y z", "deep"): 6,
        ("x", "y z", "deep", "q"): 7,
        ("x", "y z", "deep", "table"): 8,
        ("x", "y z", "deep", "table", "inner"): None,
        ("b",): None,
    }
    tomllib.loads(text)
    assert {path: find_line(text, path) for path in expected} == expected


# Writing TOML ---------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
toml_scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | texts
    | st.datetimes(timezones=st.just(datetime.UTC) | st.none())
    | st.dates()
    | st.times()
)
toml_values = st.recursive(
    toml_scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=10
)


@given(st.dictionaries(texts, toml_values, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, Any]) -> None:
    assert tomllib.loads(write_toml(value)) == value


def test_the_schema_of_a_recipe_describes_every_key() -> None:
    schema = PipelineRecipe.model_json_schema()
    assert set(schema["properties"]) == set(PipelineRecipe.model_fields)
    assert schema["additionalProperties"] is False


# What no recipe may hold ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../../../../tmp/x", "/tmp/x", "a/b", "a\\b", "C:evil", "..", ".", "", " ", "a\nb", "n" * 101]
)
def test_a_name_cannot_leave_the_runs_folder(name: str) -> None:
    text = f"seed = 1\nname = {json.dumps(name)}\ncorpus = 'c'\n"
    with pytest.raises(RecipeError, match=r"^r\.toml:2: name: .*--output"):
        parse_recipe(text, "r.toml")


@pytest.mark.parametrize("name", ["tier-mini", "Größe 2 (b)", ".hidden", "n" * 100])
def test_other_names_stay_in_it(name: str) -> None:
    found = parse_recipe(f"name = {json.dumps(name)}\ncorpus = 'c'\n").recipe.name
    assert default_folder(found).parent == Path("runs")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("trainer = " + "[" * 5000 + "]" * 5000, "deep in one another"),
        ("trainer = " + "{a=" * 5000 + "1" + "}" * 5000, "deep in one another"),
        ("trainer" + ".a" * 5000 + " = 1", "deep in one another"),
        ("trainer = " + "[" * 100 + "]" * 100, "deep in one another"),
        ("seed = " + "9" * 5001, "an integer of more than 4300 digits"),
    ],
)
def test_what_would_exhaust_the_reader_is_refused_with_its_line(line: str, said: str) -> None:
    with pytest.raises(RecipeError, match=rf"^r\.toml:2: .*{said}") as raised:
        parse_recipe(f"corpus = 'c'\n{line}\n", "r.toml")
    assert len(str(raised.value)) < 200
    key, _, value = line.partition(" = ")
    with pytest.raises(RecipeError, match=rf"^--set {key[:7]}.*{said}") as raised:
        parse_recipe("corpus = 'c'\n", "r.toml", [f"{key}={value}"])
    assert len(str(raised.value)) < 200
