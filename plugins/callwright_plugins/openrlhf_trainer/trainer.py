"""``trainer = "openrlhf"``: what a recipe names. Writes a folder, starts OpenRLHF, and follows it into the run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from callwright.capability import has
from callwright.errors import UsageError, raise_together
from callwright.options import read_options
from callwright.training.algorithm import ActorCritic, SamplesDynamically
from callwright.training.reporter import SILENT, Reporter
from callwright.training.run_folder import Run, write_atomically
from callwright.walk.components.capabilities import Scheduled
from callwright_plugins.openrlhf_trainer.configuration import Configuration
from callwright_plugins.openrlhf_trainer.following.start import Following
from callwright_plugins.openrlhf_trainer.interpreter import (
    VERSION,
    NoOpenRLHF,
    check,
    find_interpreter,
    how_to_install,
    requirements,
)
from callwright_plugins.openrlhf_trainer.memory import plan
from callwright_plugins.openrlhf_trainer.options import Model, Options, split_local
from callwright_plugins.openrlhf_trainer.translation.arguments import Translation
from callwright_plugins.openrlhf_trainer.translation.translating import Files, episode_limits, translate

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.recipe_file import LoadedRecipe

ENTRIES: Mapping[str, str] = {
    "agent": '''"""What OpenRLHF loads in each of its engines. Generated."""

from openrlhf.utils.agent import AgentExecutorBase

from callwright_plugins.openrlhf_trainer.agent import Agent

CONFIG = {config!r}


class AgentExecutor(Agent, AgentExecutorBase):
    """Episodes of Callwright; OpenRLHF makes this object without arguments."""

    def __init__(self):
        Agent.__init__(self, CONFIG)
''',
    "function": '''"""What OpenRLHF loads in each of its engines. Generated."""

from callwright_plugins.openrlhf_trainer.agent import reward_function

reward_func = reward_function({config!r})
''',
}

logger = structlog.get_logger(__name__)


class OpenRLHFTrainer:
    """Trains by OpenRLHF, on many GPUs and nodes. Options: :class:`.options.Options`.

    Options of the trainer ``local`` without counterpart are accepted and listed as unsupported. Raises
    :class:`callwright.UsageError` for an option that does not exist or has an impossible value.
    """

    name = "openrlhf"

    def __init__(self, **options: Any) -> None:
        known, self.local = split_local(options)
        self.options = read_options(Options, known, "the trainer 'openrlhf'")

    @property
    def group(self) -> int:
        """Completions a prompt: :class:`callwright.training.trainer.SamplesGroups`."""
        return self.options.group

    def check(self, loaded: LoadedRecipe, pipeline: Pipeline | None) -> list[UsageError]:
        """The mistakes that training would end with, as far as they are known without OpenRLHF."""
        if pipeline is None or pipeline.algorithm is None:
            return []
        try:
            refused = [one for one in self._translate(pipeline, Files(Path("RUN"))).unsupported if one.refused]
        except UsageError as error:
            return [error]
        return [loaded.error(f"{one.key} = {one.wanted!r}: {one.why}", *one.key.split(".")) for one in refused]

    def dry_run(
        self, pipeline: Pipeline, *, strict: bool = False, strict_except: Collection[str] = ()
    ) -> Mapping[str, Any]:
        """What a run in the folder ``RUN`` would be; nothing is written.

        ``argv``, ``approximated``, ``unsupported``, ``defaults`` (options that the recipe leaves to this trainer),
        ``memory`` (a plan) and ``files``. Where an interpreter with OpenRLHF is at hand, its parser has read the
        arguments. Raises :class:`callwright.UsageError` for what OpenRLHF cannot be told, where it refuses the
        arguments, and with ``strict`` where anything but the keys of ``strict_except`` is not exact.
        """
        files = Files(Path("RUN"))
        translated = self._translate(pipeline, files)
        raise_together(self.check(pipeline.recipe, pipeline))
        if strict or self.options.strict:
            refuse_inexact(translated, {*strict_except, *self.options.strict_except})
        try:
            check(find_interpreter(self.options.python), translated.argv)
        except NoOpenRLHF as error:
            if self.options.python is not None:
                raise
            logger.warning("the arguments were not checked by OpenRLHF's own parser", reason=str(error))
        model = read_options(Model, pipeline.recipe.recipe.model, "the table [model]")
        given = self.options.model_fields_set
        return {
            "argv": translated.argv,
            "approximated": [one.to_json() for one in translated.approximated],
            "unsupported": [one.to_json() for one in translated.unsupported],
            "defaults": {
                name: value for name, value in self.options.model_dump(mode="json").items() if name not in given
            },
            "memory": plan(
                self.options,
                model,
                pipeline.conditions.limits,
                reference=pipeline.algorithm is not None and pipeline.algorithm.kl_weight > 0,
                critic=isinstance(pipeline.algorithm, ActorCritic),
            ),
            "files": files.described(self.options),
        }

    def train(self, pipeline: Pipeline, run: Run, *, reporter: Reporter = SILENT) -> None:
        """Write the folder ``openrlhf`` of the run, train, and go on from OpenRLHF's newest checkpoint if there is one.

        Raises :class:`callwright.CallwrightError` in all foreseen cases: what OpenRLHF cannot be told, an environment
        without it, an episode that a bug ended, and OpenRLHF's own failures with the end of its log.
        """
        files = Files(run.path.resolve())
        if (files.final / "config.json").is_file():
            return
        if any(letter in str(files.train) for letter in ",@"):
            raise UsageError(f"OpenRLHF reads ',' and '@' in the name of a data file as its own; {run.path} has one")
        translated = self._translate(pipeline, files)
        if self.options.strict:
            refuse_inexact(translated, self.options.strict_except)
        raise_together(self.check(pipeline.recipe, pipeline))
        python = find_interpreter(self.options.python)
        found = check(python, translated.argv)
        for kind, differences in (("approximated", translated.approximated), ("left out", translated.unsupported)):
            for one in differences:
                reporter.say(f"{kind}: {one.key}: {one.given!r} in place of {one.wanted!r}; {one.why}")
        if found["openrlhf"] != VERSION:
            reporter.say(f"this is OpenRLHF {found['openrlhf']}; what is known here is that of {VERSION}")
        self._write(pipeline, files, translated, python, reporter)
        Following(self.options, pipeline, run, files, reporter).start(python, translated)

    def _translate(self, pipeline: Pipeline, files: Files) -> Translation:
        recipe = pipeline.recipe.recipe
        if pipeline.algorithm is None:
            raise UsageError("the trainer 'openrlhf' needs a pipeline with an algorithm")
        limits = pipeline.conditions.limits
        if self.options.rewards == "function" and not limits.single:
            raise pipeline.recipe.error(
                'OpenRLHF knows single turns only where it is given a reward function; use rewards = "agent"',
                "trainer",
                "rewards",
            )
        if self.options.rewards == "function" and pipeline.reward.truncation == "mask":
            raise pipeline.recipe.error(
                'a reward function of OpenRLHF cannot mask: use rewards = "agent" in [trainer], or another policy than '
                'truncated = "mask"',
                "reward",
                "truncated",
            )
        try:
            model = read_options(Model, recipe.model, "the table [model]")
        except UsageError as error:
            raise pipeline.recipe.error(str(error), "model", *getattr(error, "path", ())) from error
        try:
            return translate(
                files,
                self.options,
                model,
                pipeline.algorithm,
                limits,
                seed=recipe.seed,
                scheduled=has(pipeline.reward, Scheduled) and pipeline.reward.scheduled,
                local=self.local,
            )
        except UsageError as error:
            raise pipeline.recipe.error(str(error), "algorithm") from error

    def _write(
        self, pipeline: Pipeline, files: Files, translated: Translation, python: str, reporter: Reporter
    ) -> None:
        """Everything that OpenRLHF needs. The prompts are exported once."""
        files.folder.mkdir(exist_ok=True)
        configuration = self._configuration(pipeline, files)
        configuration.write(files.config)
        write_atomically(files.entry, ENTRIES[self.options.rewards].format(config=str(files.config)))
        write_atomically(files.requirements, requirements())
        if not files.prompts.exists():
            reporter.start("prompts", 1)
            done = subprocess.run(
                [python, "-m", "callwright_plugins.openrlhf_trainer.export", str(files.config)],
                capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
            reporter.finish()
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                if "No module named 'callwright" in said or "Error while finding module" in said:
                    raise NoOpenRLHF(f"{python} has no Callwright, which drives the episodes there; {how_to_install()}")
                raise UsageError(f"the prompts cannot be exported: {said.removeprefix('error: ')}")
        made = json.loads(files.prompts.read_bytes())
        for split, left_out in (("train", made["too_long"]), ("evaluation", made["evaluation_too_long"])):
            if left_out:
                reporter.say(f"left out of {split}: {left_out} tasks with prompts that are too long")

    def _configuration(self, pipeline: Pipeline, files: Files) -> Configuration:
        """What an engine's process needs to make the same pipeline.

        Raises :class:`callwright.UsageError` for objects that an embedder put into this one.
        """
        recipe, options = pipeline.recipe.recipe, self.options
        named = pipeline.registry.create("reward recipe", recipe.reward.name, **recipe.reward.options)
        for what, given, expected in (
            ("corpus", pipeline.corpus.name, recipe.corpus.name),
            ("environment", pipeline.environment is not None, recipe.environment is not None),
            ("rewards", list(pipeline.reward.weights), list(named.weights)),
        ):
            if given != expected:
                raise UsageError(
                    f"the {what} of this pipeline is an object of this process, and OpenRLHF's engines make theirs by "
                    "the recipe; register it in a plugin and name it there"
                )
        source = pipeline.registry.description()
        model = read_options(Model, recipe.model, "the table [model]")
        assert model.path is not None
        path = Path(model.path)
        return Configuration(
            recipe=str(files.run / "recipe.toml"),
            here=str(Path.cwd()),
            blocked=None if source.blocked is None else tuple(sorted(source.blocked)),
            modules=source.modules,
            model=str(path.resolve()) if path.is_dir() else model.path,
            limits=episode_limits(pipeline.conditions.limits, options),
            steps=options.steps,
            group=options.group,
            retries=options.retries,
            prompt=model.prompt,
            template_options=model.chat_template_options,
            filtered=has(pipeline.algorithm, SamplesDynamically) and pipeline.algorithm.dynamic_sampling,
            prompts=options.prompts,
            max_prompt_tokens=options.max_prompt_tokens,
            rollouts_per_step=options.rollouts_per_step,
            depths=None if options.depths is None else tuple(options.depths),
            evaluation_tasks=options.evaluation_tasks,
            truncated=pipeline.reward.truncated,
            floor=pipeline.reward.floor,
        )


def refuse_inexact(translated: Translation, allowed: Collection[str] = ()) -> None:
    """Raises :class:`callwright.UsageError` naming all that is not as the recipe says, but for the ``allowed`` keys."""
    left = [
        (kind, one)
        for kind, differences in (("approximated", translated.approximated), ("unsupported", translated.unsupported))
        for one in differences
        if one.key not in allowed
    ]
    if not left:
        return
    lines = [f"  {kind}: {one.key}: {one.given!r} in place of {one.wanted!r}; {one.why}" for kind, one in left]
    keys = ",".join(dict.fromkeys(one.key for _, one in left))
    raise UsageError(
        "strict: OpenRLHF cannot do exactly what the recipe says "
        f"(--strict-except {keys} lets it pass)\n" + "\n".join(lines)
    )
