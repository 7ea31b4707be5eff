"""``callwright evaluate --suite``: a suite's benchmarks, each in its folder, and then the tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import evolve, frozen

from callwright.cli.evaluation_run import Doing
from callwright.cli.evaluation_work import MOST, EvaluationRequest, Opened
from callwright.cli.suite_pages import markdown, page
from callwright.commands.pipelines import make_benchmark
from callwright.commands.safe_text import say
from callwright.commands.trust import Wish, agree
from callwright.errors import CallwrightError, FolderTaken, MissingExtra, RunError, UnknownName
from callwright.machines.redaction import redacted_value
from callwright.measuring.benchmark import named_version
from callwright.measuring.folders import checkpoint_name
from callwright.measuring.suites.finding import came_with_code
from callwright.measuring.suites.suite import LoadedSuite, RunOf
from callwright.measuring.suites.tables import RunState, Tables, tables_of
from callwright.registration import Reach
from callwright.training.ledger.owner import LOCK, owned
from callwright.training.run_folder import Run, write_atomically
from callwright.walk.prompt import draw_shots

if TYPE_CHECKING:
    from callwright.measuring.benchmark import Benchmark
    from callwright.plugins import Registry

#: What a suite folder is of, and what its runs have come to so far.
LEDGER: Final = "suite.json"
MADE: Final = "tables.json"
#: Options of ``evaluate`` that a suite says itself, or that mean one benchmark.
_SAID: Final = {
    "recipe": "--recipe",
    "overrides": "--set",
    "unset": "--unset",
    "corpus": "--corpus",
    "benchmark": "--benchmark",
    "corpus_options": "--corpus-option",
    "package": "--package",
    "ir": "--ir",
    "split": "--split",
    "turns": "--turns",
    "samples": "--samples",
    "by": "--by",
    "reward": "--reward",
    "instances": "--instances",
    "temperature": "--temperature",
    "shots": "--shots",
}


def refuse_what_it_says(ctx: click.Context) -> None:
    """Raise :class:`click.UsageError` if a setting was given that is the suite's."""
    given = [
        option
        for name, option in _SAID.items()
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(
            f"{', '.join(given)}: a suite says what is measured and how. For other settings copy it, change the copy, "
            "and give --suite FILE.toml; options of its benchmarks are --benchmark-option RUN.KEY=VALUE"
        )


@frozen
class SuiteRequest:
    """A suite, and what the command line says beside it."""

    loaded: LoadedSuite
    #: What every run has in common; its benchmark and settings are the suite's.
    asked: EvaluationRequest
    data: Path | None
    #: Options by the name of a run.
    given: Mapping[str, Mapping[str, Any]]
    max_cost: float | None

    def options(self, name: str) -> Mapping[str, Any] | str:
        """The options of a run's benchmark, or what is missing in words."""
        run, given = self.loaded.suite.runs[name], self.given.get(name, {})
        found = dict(run.options)
        for option, file in run.files.items():
            path = None if self.data is None else self.data / file.path
            if option in given:
                continue
            if path is not None and (path / file.has).exists():
                found[option] = str(path)
            elif file.required:
                place = f"{path} is not there" if path is not None else "--data DIR was not given"
                return (
                    f"{place}. Needed is {file.what}: put it in {file.path} below the folder of --data, or give "
                    f"--benchmark-option {name}.{option}=PATH"
                )
        for option, what in run.asks.items():
            if option not in given and option not in found:
                return f"it needs {what}: --benchmark-option {name}.{option}=…"
        return {**found, **given}

    def request(self, name: str, options: Mapping[str, Any], spent: float) -> EvaluationRequest:
        """What a run asks for, with what is left of the budget."""
        run = self.loaded.suite.runs[name]
        own = run.sampler.get(self.asked.sampler or "", {})
        given = {**own, **self.asked.sampler_options}
        if self.max_cost is not None:
            given[MOST] = self.max_cost - spent
        return evolve(
            self.asked,
            benchmark=run.benchmark,
            options=options,
            ir=run.ir,
            temperature=run.temperature,
            shots=run.shots,
            samples=run.samples,
            turns=run.turns,
            sampler_options=given,
        )


def given_by_run(loaded: LoadedSuite, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """``RUN.KEY`` options, by run. Raises :class:`click.UsageError` for a key without a run of the suite."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        name, sign, option = key.partition(".")
        if not sign or not option:
            raise click.UsageError(f"--benchmark-option {key}: with a suite it is RUN.KEY=VALUE")
        if name not in loaded.suite.runs:
            raise UnknownName(f"run of {loaded.source}", name, loaded.suite.runs)
        found.setdefault(name, {})[option] = value
    return found


def allow_suite(loaded: LoadedSuite, registry: Registry, *, yes: bool) -> None:
    """Ask before options of a foreign file are followed: of benchmarks they may name code, of samplers servers.

    Raises :class:`callwright.UsageError` for a refusal.
    """
    if came_with_code(loaded, registry):
        return
    wishes = []
    for name, run in loaded.suite.runs.items():
        for option, value in run.options.items():
            reach = Reach("code", f"has the option {option} = {value!r}", (option,))
            wishes.append(Wish(loaded.where("runs", name, "options", option), f"the benchmark of {name!r}", reach))
        for sampler, options in run.sampler.items():
            if sampler not in registry.names("sampler"):
                continue
            for reach in registry.spec("sampler", sampler).reach(options):
                first = next((option for option in reach.options if option in options), None)
                if first is not None:
                    where = loaded.where("runs", name, "sampler", sampler, first)
                    wishes.append(Wish(where, f"sampler {sampler!r}", reach))
    if wishes:
        agree(loaded, wishes, yes=yes, more_than="measuring")


def evaluate_suite(request: SuiteRequest, doing: Doing, registry: Registry, output: str | None) -> Tables:
    """Measure what can be measured, one run after the other, and make the tables.

    A run whose data or packages are not here has its rows empty, and says what it needs. With ``output`` each run has
    its folder there; the same command goes on, also after something was downloaded. Raises
    :class:`callwright.errors.FolderTaken` for a folder of another suite and :class:`callwright.errors.RunError` for a
    spent budget.
    """
    folder = None if output is None else Path(output)
    with nullcontext() if folder is None else owned(folder, "suite folder"):
        if folder is not None:
            _begin(folder, request)
        states: list[RunState] = []
        results: dict[str, Mapping[str, Any]] = {}
        spent = 0.0
        for name in request.loaded.suite.runs:
            if request.max_cost is not None and spent >= request.max_cost:
                raise RunError(f"{spent:g} were spent, and the suite may cost {request.max_cost:g}; nothing is lost")
            state, result = _run(name, request, doing, registry, spent, folder)
            states.append(state)
            say(f"{name}: {state.state}" + (f": {state.why[0]}" if state.official is None and state.why else ""))
            if result is not None:
                results[name] = result
                spent += float((result.get("usage") or {}).get("cost", 0.0))
            if folder is not None:
                _keep(folder, request, states)
        sampler = {"name": request.asked.sampler, **redacted_value(dict(request.asked.sampler_options))}
        made = tables_of(request.loaded.suite, results, states, checkpoint_name(sampler, str(request.asked.sampler)))
        if folder is not None:
            write_atomically(folder / MADE, json.dumps(made.to_json(), indent=2, ensure_ascii=False) + "\n")
            write_atomically(folder / "tables.md", markdown(made))
            write_atomically(folder / "tables.html", page(made))
        return made


def _run(
    name: str, request: SuiteRequest, doing: Doing, registry: Registry, spent: float, folder: Path | None
) -> tuple[RunState, dict[str, Any] | None]:
    run = request.loaded.suite.runs[name]
    stated, settings = run.benchmark, _settings(run)

    def missing(why: str) -> tuple[RunState, None]:
        return RunState(name, stated, settings, None, (why,), note=run.note), None

    options = request.options(name)
    if isinstance(options, str):
        return missing(options)
    if named_version(stated)[0] not in registry.names("benchmark"):
        return missing(f"no benchmark named {named_version(stated)[0]!r} is installed")
    try:
        made: Benchmark = make_benchmark(registry, stated, options)
        first = made.tasks()[:1]
        for task in first:
            draw_shots(made.corpus, task, run.shots)
    except CallwrightError as error:
        return missing(str(error))
    if not first:
        return missing("what it was pointed at holds no tasks")
    here: Opened = request.request(name, options, spent).open(registry, measured=made)
    say(f"{name}: {made.name}:{made.version}, {len(here.tasks):,} tasks, {settings}")
    try:
        result = doing.evaluate(here, None if folder is None else str(folder / name))
    except MissingExtra as error:
        return missing(str(error))
    about = result["benchmark"]
    if extended := result.get("context"):
        settings += f", context extended by YaRN to {extended['positions']:,} tokens"
    state = RunState(
        name,
        f"{made.name}:{made.version}",
        settings,
        bool(about["official"]),
        tuple(about["why"]),
        dict(result["values"]),
        run.note,
    )
    return state, result


def _settings(run: RunOf) -> str:
    said = [run.ir, "greedy" if run.temperature == 0 else f"temperature {run.temperature:g}", f"{run.shots}-shot"]
    said += [f"{run.samples} samples"] if run.samples > 1 else []
    said += [f"up to {run.turns} completions"] if run.turns is not None else []
    return ", ".join(said)


# The folder -----------------------------------------------------------------------------------------------------------


def _identity(request: SuiteRequest) -> dict[str, Any]:
    """What may not change between two starts; the folder of each run looks after its own settings beside."""
    asked, text = request.asked, request.loaded.text or ""
    return {
        "suite": Path(request.loaded.source).stem,
        "sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(),
        "sampler": {"name": asked.sampler, **redacted_value(dict(asked.sampler_options))},
        "limit": asked.limit,
        "seed": asked.seed,
    }


def _begin(folder: Path, request: SuiteRequest) -> None:
    before = Run(folder).read_json(LEDGER)
    identity = _identity(request)
    if before is None:
        if any(not path.name.startswith(LOCK) for path in folder.iterdir()):
            raise FolderTaken(f"{folder} is not empty and holds no suite; choose another folder (-o)")
        write_atomically(folder / LEDGER, json.dumps({**identity, "runs": {}}, indent=2) + "\n")
        return
    differing = sorted(key for key, value in identity.items() if before.get(key) != value)
    if differing:
        raise FolderTaken(
            f"{folder} holds a suite with other settings ({', '.join(differing)}); choose another folder (-o)"
        )


def _keep(folder: Path, request: SuiteRequest, states: list[RunState]) -> None:
    runs = {
        one.name: {"state": one.state, "benchmark": one.benchmark, "settings": one.settings, "why": list(one.why)}
        for one in states
    }
    write_atomically(
        folder / LEDGER, json.dumps({**_identity(request), "runs": runs}, indent=2, ensure_ascii=False) + "\n"
    )


def draw_tables(made: Tables) -> None:
    """The tables for people."""
    from callwright.commands.terminal import parts, screen, table, text

    console = screen()
    for one in made.tables:
        rows: list[Sequence[str] | None] = []
        before = False
        for row in one.rows:
            if row.printed and not before:
                rows += [None, ["printed:", *[""] * (len(one.heads) - 1)]]
            before = row.printed
            rows.append((row.name, *row.cells))
        for drawn in parts(one.heads, rows, one.title, console):
            console.print(drawn)
        for note in one.notes:
            console.print(text(note))
    drawn = table("run", "benchmark", "settings", "", title=made.title)
    for run in made.runs:
        drawn.add_row(*map(text, (run.name, run.benchmark, run.settings, run.state)))
    console.print(drawn)
    for run in made.runs:
        for reason in run.reasons:
            console.print(text(f"{run.name}: {reason}"))
    for note in made.notes:
        console.print(text(note))
