"""``callwright schema``, and that the files of the repository fit."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from click.testing import Result

from callwright.commands.file_formats import FORMATS, schema_of
from callwright.errors import RecipeError
from callwright.recipe_file import parse_recipe

Invoke = Callable[..., Result]


def test_the_formats_are_listed(invoke: Invoke) -> None:
    lines = invoke("schema").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(FORMATS)
    assert json.loads(invoke("schema", "--json").stdout) == dict(FORMATS)
    result = invoke("schema", "recipes")
    assert result.exit_code == 2
    assert "Did you mean 'recipe'?" in result.stderr


@pytest.mark.parametrize("name", FORMATS)
def test_every_schema_is_one(invoke: Invoke, name: str) -> None:
    schema = json.loads(invoke("schema", name).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == schema_of(name)
    assert schema["description"]
    assert not jsonschema.Draft202012Validator(schema).is_valid(5)  # it asks for something


def test_shipped_recipes_fit_the_schema(root: Path) -> None:
    validator = jsonschema.Draft202012Validator(schema_of("recipe"))
    paths = sorted((root / "recipes").glob("*.toml"))
    assert paths
    for path in paths:
        validator.validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('corpus = "x"', True),
        ('corpus = "x"\nmodel = "path"\nsampler = "gold"', True),
        ('[corpus]\nname = "x"\nanything = 1\n[model.tiny]\nwidth = 3', True),
        ("seed = 1", False),
        ('corpus = "x"\nseed = "one"', False),
        ('corpus = "x"\nunheard_of = 1', False),
        ('corpus = "x"\ntime_limit = 0', False),
        ("corpus = 5", False),
        ('[corpus]\ntrain = "train"', False),
    ],
)
def test_the_schema_of_recipes_agrees_with_their_reader(text: str, fits: bool) -> None:
    assert jsonschema.Draft202012Validator(schema_of("recipe")).is_valid(tomllib.loads(text)) == fits
    if fits:
        parse_recipe(text)
    else:
        with pytest.raises(RecipeError):
            parse_recipe(text)
