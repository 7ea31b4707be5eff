"""Pipeline recipes: TOML files that name one component of each kind and its options.

    seed = 0
    [corpus]                 # a table names a component and gives it options …
    name = "toolworld-mini-v1"
    [algorithm]
    name = "bn-grpo"
    kl_weight = 0.04
    [reward]
    name = "tier"

``--set a.b=c`` on the command line overrides one value, ``--unset a.b`` leaves a key out; ``--set algorithm=dapo``
replaces a component and its options; ``--set trainer=trl`` names another trainer for the same table, whose keys it
follows, lists or refuses by name.
Every error starts with the file and the line that it is about.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from callwright.errors import RecipeError, UnknownName, near_path
from callwright.recipe_file.mistakes import in_words, sound_part
from callwright.recipe_file.overriding import DEEPEST, MOST_DIGITS, TOO_DEEP, TOO_MANY_DIGITS, Applied, apply_override
from callwright.recipe_file.overriding import override_words as override_words
from callwright.recipe_file.toml_text import find_line as find_line
from callwright.recipe_file.toml_text import locate as locate
from callwright.recipe_file.toml_text import write_toml as write_toml

_LONGEST_NAME: Final = 100
#: Ten years: the longest that a call or a turn of the user may take in a session.
_MOST_SECONDS: Final = 315_360_000
_DAY: Final = 86_400
_Model = TypeVar("_Model", bound=BaseModel)


class Choice(BaseModel):
    """One component by name; every other key of its table is an option of it."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: str = Field(description="The registered name of the component.")

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, Any]:
        """The options of the component."""
        return dict(self.model_extra or {})


class Clock(BaseModel):
    """How the time of sessions moves, in seconds; the fields of :class:`callwright.environments.ClockPolicy`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    call: int = Field(default=20, ge=0, le=_MOST_SECONDS, description="What a call takes.")
    call_spread: int = Field(default=0, ge=0, le=_MOST_SECONDS, description="Give or take so much; below `call`.")
    user_turn: int = Field(default=180, ge=0, le=_MOST_SECONDS, description="What a turn of the user takes.")
    user_turn_spread: int = Field(default=0, ge=0, le=_MOST_SECONDS, description="Give or take so much.")
    jumps: list[Annotated[int, Field(ge=0, le=_MOST_SECONDS)]] = Field(
        default_factory=list, description="Seconds more with the user's first, second … turn."
    )
    seed: int = Field(default=0, description="Fixes what the spreads draw.")

    @model_validator(mode="after")
    def _moves(self) -> Clock:
        for name, taken, spread in (
            ("call", self.call, self.call_spread),
            ("user_turn", self.user_turn, self.user_turn_spread),
        ):
            if spread and spread >= taken:
                raise ValueError(f"{name}_spread ({spread}) must be smaller than {name} ({taken})")
        return self


class Fault(BaseModel):
    """What can befall a call; the fields of :class:`callwright.environments.Fault`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: Literal["unavailable", "timeout", "lost_reply", "dropped_fields", "truncated_page", "stale_read"]
    rate: float = Field(default=0.1, ge=0, le=1, description="The probability for a call.")
    tools: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list, description="The tools that it befalls; all, if there are none."
    )
    seconds: int = Field(default=30, ge=0, le=_DAY, description="What a time-out takes, where time moves.")
    silent: bool = Field(default=False, description="A spoiled result does not say that it is one.")


class RateLimit(BaseModel):
    """How many calls are answered; the fields of :class:`callwright.environments.RateLimit`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    calls: int = Field(ge=1, le=1_000_000, description="So many in any such time; in a turn, where time stands still.")
    seconds: int = Field(default=60, ge=1, le=_DAY, description="The time.")
    tool: str = Field(default="", description="A tool; '' is all of them together, '*' each by itself.")


class Hazards(BaseModel):
    """What calls meet in sessions; the fields of :class:`callwright.environments.Hazards`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    faults: list[Fault] = Field(default_factory=list, description="Faults, in the order in which they are drawn.")
    limits: list[RateLimit] = Field(default_factory=list, description="Limits of rates.")
    seed: int = Field(default=0, description="Fixes what is drawn.")
    in_a_row: int = Field(default=2, ge=0, description="Calls of a tool that are hit in succession; 0 is no bound.")


class CorpusChoice(Choice):
    """A corpus, and which of its splits are trained and evaluated on."""

    train: str = Field(default="train", description="The split to train on.")
    evaluation: str = Field(default="evaluation", description="The split to evaluate on.")


class RewardChoice(Choice):
    """A reward recipe, and what a completion earns under it that a limit of tokens cut off."""

    truncated: Literal["as_is", "mask", "floor", "overlong"] | None = Field(
        default=None,
        description="What a cut-off completion earns: as_is, mask, floor (at most that total) or overlong (as it is, "
        "and the algorithm shapes it). Left out: overlong where the algorithm shapes, else the reward's own choice.",
    )
    floor: float | None = Field(
        default=None, allow_inf_nan=False, description="The total of a cut-off completion. Left out: the reward's own."
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options of the reward, those that every reward has included."""
        stated = {"truncated": self.truncated, "floor": self.floor}
        return {**super().options, **{key: value for key, value in stated.items() if value is not None}}


class Turns(BaseModel):
    """How long an episode may become; the defaults are Prove's turns, and no bound on tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    assistant_turns: int = Field(default=10, ge=1, description="Completions of an episode; 1 is a single turn.")
    user_turns: int = Field(default=5, ge=1, description="Messages of the user, the query included.")
    turn_tokens: int | None = Field(default=None, ge=1, description="Sampled tokens of one completion.")
    total_tokens: int | None = Field(
        default=None, ge=1, description="Sampled and environment tokens of an episode, after its prompt."
    )
    observation_tokens: int | None = Field(
        default=None, ge=1, description="Environment tokens of one turn; longer results are cut in the middle."
    )
    context_tokens: int | None = Field(default=None, ge=1, description="Prompt and response: the model's positions.")
    steps: int | None = Field(
        default=None,
        ge=1,
        description="Completions with calls while one message of the user is worked on; one more ends the episode.",
    )
    unparsed: Literal["episode", "turn"] = Field(
        default="episode", description="What a text that is no program ends: the episode, or the user's turn."
    )


class PipelineRecipe(BaseModel):
    """A whole pipeline. ``callwright schema recipe`` prints this as JSON Schema."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(default="unnamed", description="What the run is called in reports.")
    description: str = Field(default="", description="What the recipe is for.")
    seed: int = Field(default=0, description="Fixes everything that is drawn.")
    corpus: CorpusChoice
    ir: Choice = Field(default_factory=lambda: Choice(name="json"), description="The intermediate representation.")
    reward: RewardChoice = Field(default_factory=lambda: RewardChoice(name="tier"), description="The reward recipe.")
    algorithm: Choice = Field(default_factory=lambda: Choice(name="bn-grpo"), description="The RL algorithm.")
    trainer: Choice = Field(default_factory=lambda: Choice(name="local"), description="What runs the algorithm.")
    environment: Choice | None = Field(
        default=None, description="Executes the programs in place of the corpus' own environment: a recording, say."
    )
    sampler: Choice | None = Field(default=None, description="For evaluation without training.")
    user: Choice | None = Field(
        default=None, description="Options of users of this name, in place of those that their tasks state."
    )
    model: dict[str, Any] = Field(default_factory=dict, description="The policy; its keys belong to the trainer.")
    time_limit: float | None = Field(default=None, gt=0, description="Seconds for each thing asked of a session.")
    isolation: Literal["auto", "process", "none"] = Field(
        default="auto",
        description="Where sessions live: in processes that can be killed, or here; auto: by whose it is.",
    )
    tracker: list[Choice] = Field(
        default_factory=list, description="What shows the run elsewhere while it grows: one component, or several."
    )
    turns: Turns | None = Field(default=None, description="Limits of multi-turn episodes; without it, a single turn.")
    clock: Clock | None = Field(
        default=None, description="Lets time move in the sessions of tasks that name no clock; without it, as they say."
    )
    hazards: Hazards | None = Field(
        default=None, description="Faults and limits that calls meet in the sessions of tasks that name none."
    )

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        # Run folders are runs/<name>-<time>: a name that is a path would write somewhere else.
        if name.strip(" .") == "" or len(name) > _LONGEST_NAME or not name.isprintable() or set(name) & set("/\\:"):
            raise ValueError(
                f"{name[:_LONGEST_NAME]!r} cannot be part of a folder's name: give 1 to {_LONGEST_NAME} printable "
                "characters without '/', '\\' and ':' (where a run goes is said by --output)"
            )
        return name

    @field_validator("tracker", mode="before")
    @classmethod
    def _one_tracker(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | Mapping) else value

    @model_validator(mode="before")
    @classmethod
    def _model_shorthand(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("model"), str):
            return {**value, "model": {"path": value["model"]}}
        return value


class LoadedTable:
    """A validated file with its source text, so that later errors can still name the line.

    ``text`` is ``None`` for one in memory.
    """

    def __init__(self, data: dict[str, Any], source: str, text: str | None, overrides: Applied) -> None:
        self.data, self.source, self.text, self.overrides = data, source, text, overrides

    def choice(self, part: str) -> Choice | None:
        """The component that it chooses under a key."""
        raise NotImplementedError

    def choices(self, part: str) -> list[tuple[tuple[str, ...], Choice]]:
        """The components that it chooses under a key, each with the path to its table: none, one, or several."""
        chosen = self.choice(part)
        return [] if chosen is None else [((part,), chosen)]

    def effective_text(self) -> str:
        """A recipe file that says the same with the overrides applied; the file's own text if there are none."""
        return write_toml(self.data) if self.overrides or self.text is None else self.text

    def where(self, *path: str) -> str:
        """``file:line`` of a key, or of the nearest table around it; ``--set`` or ``--unset`` where that changed it."""
        return locate(self.source, self.text or "", self.overrides, path)

    def error(self, message: str, *path: str) -> RecipeError:
        """An error about a key of this recipe."""
        made = RecipeError(f"{self.where(*path)}: {message}")
        made.key = path
        return made


class LoadedRecipe(LoadedTable):
    """A validated pipeline recipe."""

    def __init__(
        self, recipe: PipelineRecipe, data: dict[str, Any], source: str, text: str | None, overrides: Applied
    ) -> None:
        super().__init__(data, source, text, overrides)
        self.recipe = recipe

    def choice(self, part: str) -> Choice | None:
        """The component of a kind, ``None`` where it names none."""
        found: Choice | None = getattr(self.recipe, part)
        return found

    def choices(self, part: str) -> list[tuple[tuple[str, ...], Choice]]:
        """The components under a key, each with the path to its table; those of a list by their place in it."""
        found = getattr(self.recipe, part)
        if not isinstance(found, list):
            return super().choices(part)
        listed = isinstance(self.data.get(part), list)
        return [((part, str(place)) if listed else (part,), choice) for place, choice in enumerate(found)]


def load_recipe(recipe: Path | str | Mapping[str, Any] | LoadedRecipe, overrides: Sequence[str] = ()) -> LoadedRecipe:
    """Read a recipe file, a shipped recipe by its name, or a recipe in memory, and apply overrides in their order:
    ``a.b=value``, and ``-a.b`` for a key that is left out.

    In memory a recipe is the mapping that the file would hold, or one that was loaded before. Raises
    :class:`callwright.errors.RecipeError` naming file and line, or the key where there is no file.
    """
    if isinstance(recipe, LoadedRecipe):
        return _validated(recipe.data, recipe.source, recipe.text, overrides) if overrides else recipe
    if isinstance(recipe, Mapping):
        return _validated(recipe, "the recipe", None, overrides)
    source, text = recipe_text(str(recipe))
    return parse_recipe(text, source, overrides)


def recipe_text(name: str) -> tuple[str, str]:
    """The path of a recipe and its text. Raises :class:`callwright.errors.RecipeError`."""
    source = find_recipe(name)
    try:
        return str(source), source.read_text(encoding="utf-8-sig")  # editors of Windows write a mark before the text
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecipeError(f"{source}: cannot be read: {reason}") from error


def parse_recipe(text: str, source: str = "<recipe>", overrides: Sequence[str] = ()) -> LoadedRecipe:
    """Read a recipe from a text."""
    return _validated(toml_of(text, source), source, text, overrides)


def toml_of(text: str, source: str) -> dict[str, Any]:
    """The data of a text. Raises :class:`callwright.errors.RecipeError` with its line for one that is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = at[1] if at else str(len(text.splitlines()))
        raise RecipeError(f"{source}:{line}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise RecipeError(f"{source}:{_line_of_nesting(text)}: {TOO_DEEP}") from error
    except ValueError as error:  # not one of TOML: Python reads no integer of so many digits
        raise RecipeError(f"{source}:{_line_of_digits(text)}: {TOO_MANY_DIGITS}") from error


def _line_of_nesting(text: str) -> int:
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        depth += sum((character in "[{") - (character in "]}") for character in line)
        if depth > DEEPEST or line.count("[") + line.count("{") > DEEPEST:
            return number
    return 1


def _line_of_digits(text: str) -> int:
    digits = re.compile(rf"\d(?:_?\d){{{MOST_DIGITS}}}")
    return next((number for number, line in enumerate(text.splitlines(), 1) if digits.search(line)), 1)


def _too_deep(data: Mapping[str, Any]) -> str | None:
    """The key of the file under which values stand too deep in one another. Without recursion, which they would end."""
    for key, value in data.items():
        level: list[Any] = [value]
        for _ in range(DEEPEST):
            level = [
                inner
                for one in level
                if isinstance(one, Mapping | list)
                for inner in (one.values() if isinstance(one, Mapping) else one)
            ]
            if not level:
                break
        else:
            return key
    return None


def _validated(given: Mapping[str, Any], source: str, text: str | None, overrides: Sequence[str]) -> LoadedRecipe:
    try:
        recipe, data, applied = validated(PipelineRecipe, given, source, text, overrides)
    except RecipeError as error:
        if error.sound is not None:
            recipe, data, applied = error.sound
            error.rest = LoadedRecipe(recipe, data, source, text, applied)
        raise
    return LoadedRecipe(recipe, data, source, text, applied)


def validated(
    model: type[_Model], given: Mapping[str, Any], source: str, text: str | None, overrides: Sequence[str]
) -> tuple[_Model, dict[str, Any], dict[str, str | None]]:
    """What data come to with ``overrides``: the model, the data and the values that were set, by their keys (``None``
    for a key that was left out).

    ``text`` is what they were read from, ``None`` if they were never written. Raises
    :class:`callwright.errors.RecipeError`, a line for each mistake.
    """
    if isinstance(overrides, str):
        raise RecipeError(f"overrides are a list of texts, such as [{overrides!r}], not one text")
    deep = _too_deep(given)
    if deep is not None:
        raise RecipeError(f"{locate(source, text or '', {}, (deep,))}: {deep}: {TOO_DEEP}")
    data = copy.deepcopy(dict(given))
    applied: dict[str, str | None] = {}
    refused = []
    for override in overrides:
        try:
            key, value = apply_override(model, data, override)
        except RecipeError as error:
            refused.append(str(error))
            continue
        applied[key] = value
        if _too_deep(data) is not None:
            raise RecipeError(f"--set {override:.60}…: {TOO_DEEP}")
    if refused:
        raise RecipeError("\n".join(dict.fromkeys(refused)))
    try:
        return model.model_validate(data), data, applied
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            path = tuple(str(part) for part in problem["loc"])
            lines.append(f"{locate(source, text or '', applied, path)}: {in_words(problem, path, model)}")
        failed = RecipeError("\n".join(dict.fromkeys(lines)))
        sound = sound_part(model, data, error)
        failed.sound = None if sound is None else (*sound, applied)
        raise failed from error


def shipped_recipes() -> dict[str, Path]:
    """The recipes to train by that come with the package, by name."""
    return _shipped("*.toml")


def shipped_syntheses() -> dict[str, Path]:
    """The recipes of syntheses that come with the package, by name."""
    return _shipped("synthesis/*.toml")


def _shipped(pattern: str) -> dict[str, Path]:
    here = Path(__file__).resolve().parent.parent
    for folder in (here / "recipes", here.parent.parent / "recipes"):  # in a wheel, in a checkout
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob(pattern))}
    return {}


def find_recipe(name: str) -> Path:
    """The file of this path, or the shipped recipe of this name."""
    path = Path(name)
    if path.is_file():
        return path
    shipped = {**shipped_syntheses(), **shipped_recipes()}
    if path.suffix != ".toml" and path.parent == Path() and name in shipped:
        return shipped[name]
    if path.suffix == ".toml" and path.parent != Path() and path.stem in shipped and path.parent.name == "recipes":
        return shipped[path.stem]
    if not name:
        raise RecipeError("the name of the recipe is empty: give a file, or a recipe that ships, such as tier-mini")
    if path.is_dir():
        raise RecipeError(f"{name} is a folder; a recipe is a TOML file")
    if (near := near_path(path)) and (path.suffix == ".toml" or path.parent != Path()):
        raise RecipeError(f"{name}: there is no such file{near}")
    raise RecipeError(f"{name}: there is no such file. {UnknownName('shipped recipe', path.stem, shipped)}")
