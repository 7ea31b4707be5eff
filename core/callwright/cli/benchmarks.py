"""``callwright benchmark``: which benchmarks there are, what they hold, and answers judged without a model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from attrs import frozen

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName
from callwright.commands.pipelines import make_benchmark

if TYPE_CHECKING:
    from callwright.language.parser import Parser
    from callwright.measuring.benchmark import Benchmark, Judged, Judgement, Need
    from callwright.measuring.sources.source import Source
    from callwright.plugins import Registry
    from callwright.walk.attempt import Attempt
    from callwright.walk.conditions import Conditions
    from callwright.walk.tasks import Task

benchmark_argument = click.argument("name", type=ComponentName("benchmark"), metavar="NAME[:VERSION]")
package_option = click.option("--package", metavar="DIR", help="Code of others that it needs: its option 'package'.")
settings_option = click.option(
    "--benchmark-option", "given", multiple=True, metavar="K=V", help="An option of the benchmark. May be repeated."
)


#: Answers that are judged together, where a benchmark can.
_AT_ONCE: Final = 64


class _Answer(NamedTuple):
    """An answer that was read: its place, the id of its row, what kind of answer it is, and the attempt."""

    where: str
    row: Any
    kind: str
    task: Task
    attempt: Attempt


def _opened(app: App, text: str, data: str | None, package: str | None, given: tuple[str, ...]) -> Benchmark:
    stated = {"data": data, "package": package}
    known = {key: value for key, value in stated.items() if value is not None}
    return make_benchmark(app.registry, text, {**known, **options.key_values(given, "--benchmark-option")})


@frozen
class Wanted:
    """What a version of a benchmark needs, which a class may say before it is made."""

    name: str
    version: str
    versions: Sequence[str]
    needs: Sequence[Need]
    sources: Mapping[str, Sequence[Source]]

    @property
    def archives(self) -> Sequence[Source]:
        """What a package index holds of it."""
        return self.sources.get(self.version, ())

    def to_json(self) -> dict[str, Any]:
        """The same for a program."""
        archives = [{"file": one.file, "size": one.size, "sha256": one.sha256} for one in self.archives]
        return {
            "name": self.name,
            "version": self.version,
            "versions": list(self.versions),
            "needs": [need.to_json() for need in self.needs],
            **({"sources": archives} if archives else {}),
        }

    def draw(self) -> None:
        """The same for people."""
        from callwright.commands.terminal import screen, text
        from callwright.measuring.sources.index import shown

        console = screen()
        console.print(text(f"{self.name}:{self.version} (versions: {', '.join(self.versions)})"))
        for need in self.needs:
            console.print(text(f"needs {need.kind}: {need.what}"))
            for file in need.files:
                console.print(text(f"  {file}"))
            if need.origin:
                console.print(text(f"  from {need.origin}"))
        get = f"callwright benchmark get {self.name}:{self.version} --data DIR"
        for one in self.archives:
            console.print(text(f"{get} fetches {one.file}, {shown(one.size)}"))


def _without_data(app: App, text: str) -> Wanted | None:
    """What a benchmark wants whose files nobody has named; ``None`` where it needs none, or says so only once made."""
    from callwright.measuring.benchmark import Need, named_version, version_of

    name, version = named_version(text)
    made = app.registry.spec("benchmark", name).load()
    needs, versions, sources = (getattr(made, key, None) for key in ("needs", "versions", "sources"))
    if not isinstance(needs, list | tuple) or not isinstance(versions, list | tuple) or not versions:
        return None
    if not any(isinstance(need, Need) and need.kind == "data" for need in needs):
        return None
    chosen = version_of(name, version, versions)
    return Wanted(name, chosen, versions, needs, sources if isinstance(sources, Mapping) else {})


@click.command("list")
@options.json_option
@click.pass_obj
def list_(app: App, as_json: bool) -> None:
    """List the benchmarks that are installed."""
    from callwright.commands.terminal import screen, table, text

    found = [app.registry.spec("benchmark", name) for name in app.registry.names("benchmark")]
    if as_json:
        rows = [{"name": one.name, "plugin": one.plugin, "summary": one.summary} for one in found]
        click.echo(json.dumps(rows, indent=2))
        return
    shown = table("name", "plugin", "about", codes=(0,))
    for one in found:
        shown.add_row(text(one.name), text(one.plugin), text(one.summary))
    screen().print(shown)


@click.command("show")
@benchmark_argument
@options.data_option
@package_option
@settings_option
@options.json_option
@click.pass_obj
def show(app: App, name: str, data: str | None, package: str | None, given: tuple[str, ...], as_json: bool) -> None:
    """Show what a benchmark holds: versions, categories, what it needs, and whether its results are official.

    Of one whose files are not there yet, that is, without --data, it says which they are and where they come from.
    """
    from callwright.commands.terminal import screen, text
    from callwright.measuring.benchmark import about

    if data is None and not any(one.partition("=")[0].strip() == "data" for one in given):
        wanted = _without_data(app, name)
        if wanted is not None:
            if as_json:
                click.echo(json.dumps(wanted.to_json(), indent=2))
            else:
                wanted.draw()
                screen().print(text("give --data DIR for what the folder holds and whether results are official"))
            return
    made = _opened(app, name, data, package, given)
    wanted = Wanted(made.name, made.version, made.versions, made.needs, getattr(made, "sources", {}))
    if as_json:
        click.echo(json.dumps({**about(made), **wanted.to_json(), "categories": dict(made.categories)}, indent=2))
        return
    console = screen()
    wanted.draw()
    for reason in made.unofficial:
        console.print(text(f"not official: {reason}"))
    for category, count in made.categories.items():
        console.print(text(f"{count:7,}  {category}"))
    console.print(text(f"{sum(made.categories.values()):7,}  in all"))


@click.command("judge")
@benchmark_argument
@click.argument("answers", metavar="ANSWERS.jsonl")
@options.data_option
@package_option
@settings_option
@options.ir_option
@click.option("-o", "--output", required=True, metavar="OUT.jsonl", help="Where verdicts go, a row each.")
@options.replace_option
@options.json_option
@click.pass_obj
def judge(
    app: App,
    name: str,
    answers: str,
    data: str | None,
    package: str | None,
    given: tuple[str, ...],
    ir: str,
    output: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Judge answers without a model.

    A row of ANSWERS (plain, .gz or .zst) is {"id", "completion"}, {"id", "messages"} or one of the benchmark's official
    result rows, whose verdict is not read; some benchmarks also take an official result file, or a folder of them. OUT
    has {"id", "kind", "valid", "error_type"} for each, in the same order; "valid" is null where nothing is known. Then
    the table is printed.
    """
    from callwright.commands.safe_text import say
    from callwright.errors import DataError
    from callwright.measuring.benchmark import about
    from callwright.training.run_folder import write_atomically

    options.refuse_inputs(output, answers)
    options.refuse_existing(Path(output), overwrite=overwrite)
    made = _opened(app, name, data, package, given)
    parser: Parser = app.registry.create("parser", ir)
    lines: list[str] = []
    judged: list[Judged] = []
    errors: Counter[str] = Counter()
    for row_id, kind, one in _judged(made, answers, parser, app.registry):
        judgement = one.judgement
        error = "masked" if judgement.masked is not None else judgement.error
        valid = None if judgement.masked is not None else judgement.correct
        lines.append(json.dumps({"id": row_id, "kind": kind, "valid": valid, "error_type": error or None}) + "\n")
        judged.append(one)
        errors.update([error] if error else [])
    if not judged:
        raise DataError(f"{answers} holds no answers: expected a row for each, and there is none")
    write_atomically(Path(output), "".join(lines))
    result = {
        "benchmark": about(made, judged),
        "answers": len(judged),
        "masked": sum(one.judgement.masked is not None for one in judged),
        "values": dict(made.aggregate(judged)),
        "errors": dict(errors.most_common()),
    }
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        draw_values(result)
        if result["masked"]:
            say(f"{result['masked']} masked: nothing is known of them")


def _judged(made: Benchmark, answers: str, parser: Parser, registry: Registry) -> Iterator[tuple[Any, str, Judged]]:
    """Every answer in its order. Raises :class:`callwright.errors.DataError` with its line for one that is none."""
    from callwright.measuring.benchmark import Judged, JudgesTogether

    times: Counter[tuple[str, str]] = Counter()
    at_once = _AT_ONCE if isinstance(made, JudgesTogether) else 1
    found = _answers(made, answers, parser, registry)
    while some := list(islice(found, at_once)):
        if isinstance(made, JudgesTogether):
            judgements = made.judge_together([(one.task, one.attempt) for one in some])
        else:
            judgements = [_judgement(made, one) for one in some]
        for one, judgement in zip(some, judgements, strict=True):
            sample = times[one.task.id, one.kind]
            times[one.task.id, one.kind] += 1
            yield one.row, one.kind, Judged(one.task.id, made.category_of(one.task), judgement, sample)


def _answers(made: Benchmark, answers: str, parser: Parser, registry: Registry) -> Iterator[_Answer]:
    from callwright.errors import DataError
    from callwright.measuring.benchmark import users_of
    from callwright.walk.conditions import Conditions
    from callwright.walk.limits import limits_of

    tasks: dict[str, Task] = {task.id: task for task in made.tasks()}
    conditions = Conditions(limits=limits_of(made.corpus), users=users_of(made, registry))
    for where, row in _answer_rows(made, answers):
        row_id = next((row[name] for name in ("id", "sample_id", "uuid") if name in row), None)
        task = tasks.get(row_id) if isinstance(row_id, str) else None
        if task is None:
            raise DataError(f"{where}: {made.name}:{made.version} has no task {row_id!r:.80}{_near(row_id, tasks)}")
        if _is_prompt(row, task, parser, registry):
            raise DataError(
                f"{where}: the row is the task as it is exported, and answers nothing: add what was answered"
            )
        try:
            kind, attempt = _attempt(made, row, task, parser, conditions)
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
        stated = row.get("kind")
        yield _Answer(where, row_id, stated if isinstance(stated, str) else kind, task, attempt)


def _is_prompt(row: Mapping[str, Any], task: Task, parser: Parser, registry: Registry) -> bool:
    """Whether the messages are what ``export`` wrote: an opening has words of the assistant, too, that nobody sampled.

    What the system says differs by form, and does not count.
    """
    from callwright.walk.prompt import build_messages

    stated = row.get("messages")
    if not isinstance(stated, list) or row.get("completions") or row.get("completion") is not None:
        return False
    asked = [one.to_openai() for one in build_messages(task, parser, registry) if one.role != "system"]
    return asked == [one for one in stated if not isinstance(one, Mapping) or one.get("role") != "system"]


def _answer_rows(made: Benchmark, answers: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every row with its place: of a file of the benchmark's own kind, else of a file of rows."""
    from callwright.commands.jsonl import BadRow, RowFile
    from callwright.errors import DataError
    from callwright.measuring.benchmark import ReadsAnswerFiles

    found = made.answer_rows(Path(answers)) if isinstance(made, ReadsAnswerFiles) and answers != "-" else None
    if found is not None:
        yield from found
        return
    with RowFile(answers) as rows:
        for row in rows:
            where = f"{rows.name}:{rows.number}"
            if isinstance(row, BadRow):
                raise DataError(f"{where}: {row}")
            yield where, row


def _attempt(
    made: Benchmark, row: Mapping[str, Any], task: Task, parser: Parser, conditions: Conditions
) -> tuple[str, Attempt]:
    from callwright.errors import DataError
    from callwright.measuring.benchmark import ReadsAnswers, attempt_of

    found = attempt_of(row, task, parser, conditions)
    if found is None and isinstance(made, ReadsAnswers):
        official = made.answer(row, parser)
        found = None if official is None else ("official", official)
    if found is None:
        raise DataError("the row holds no answer: neither 'completion' nor 'messages', nor what this benchmark writes")
    return found


def _judgement(made: Benchmark, answer: _Answer) -> Judgement:
    from callwright.errors import DataError

    try:
        return made.judge(answer.task, answer.attempt)
    except DataError as error:
        raise DataError(f"{answer.where}: {error}") from error


def _near(row_id: object, tasks: Mapping[str, Any]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(str(row_id)[:80], tasks, n=1)
    return f". Did you mean {near[0]!r}?" if near else ""


def draw_values(result: Mapping[str, Any]) -> None:
    """The official table for people."""
    from callwright.commands.terminal import percent, screen, table, text

    measured = result["benchmark"]
    mark = "" if measured["official"] else " (not official)"
    shown = table("", "value", right=(1,), title=f"{measured['name']}:{measured['version']}{mark}")
    told = result.get("headline", True)
    for name, value in result["values"].items():
        counted = name in measured.get("counts", ()) and value is not None
        shown.add_row(text(name), "–" if not told else f"{value:.2f}" if counted else percent(value))
    console = screen()
    console.print(shown)
    if not told:
        console.print(f"no figures: {result['masked']} are masked, and what is left says little of all")
    for reason in measured["why"]:
        console.print(text(f"not official: {reason}"))


@click.command("export")
@click.argument("name", metavar="NAME[:VERSION]|FOLDER")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "bfcl", "inspect"]),
    default="jsonl",
    show_default=True,
    help="jsonl: messages and tools. bfcl: BFCL's question and function. inspect: the evaluation in FOLDER as a log.",
)
@click.option("--category", metavar="NAME", help="Only this one.")
@options.data_option
@package_option
@settings_option
@options.ir_option
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUT",
    help="The file ('-': stdout). A log may go in a folder that is there.",
)
@options.replace_option
@click.pass_obj
def export(
    app: App,
    name: str,
    form: str,
    category: str | None,
    data: str | None,
    package: str | None,
    given: tuple[str, ...],
    ir: str,
    output: str,
    overwrite: bool,
) -> None:
    """Write the tasks for whoever answers them elsewhere, or what was measured as a log of Inspect.

    A row is {"id", "category", "messages", "tools"}, without what is right; answers go back with callwright benchmark
    judge. With --format bfcl it is {"id", "question", "function"}, with a list of messages for each turn of the user.
    With --format inspect, FOLDER is what callwright evaluate -o left, and inspect view opens the log.
    """
    from callwright.errors import UsageError
    from callwright.measuring.bfcl_form import bfcl_row
    from callwright.training.run_folder import write_atomically
    from callwright.walk.prompt import build_messages
    from callwright.walk.users.kinds import kinds_of

    if form == "inspect":
        if category or data or package or given:
            raise UsageError(
                "--format inspect writes what was measured: it takes a FOLDER, and no option of a benchmark"
            )
        _export_log(Path(name), Path(output), overwrite)
        return
    if output != "-":
        options.refuse_existing(Path(output), overwrite=overwrite)
    made = _opened(app, name, data, package, given)
    parser: Parser = app.registry.create("parser", ir)
    lines = []
    for task in made.tasks(category):
        if form == "bfcl":
            lines.append(json.dumps(bfcl_row(task, kinds_of(app.registry)), ensure_ascii=False, default=_plain) + "\n")
            continue
        messages = [message.to_openai() for message in build_messages(task, parser, app.registry)]
        tools = [
            {
                "type": "function",
                "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
            }
            for spec in task.tools.values()
            if not spec.hidden
        ]
        row = {"id": task.id, "category": made.category_of(task), "messages": messages, "tools": tools}
        lines.append(json.dumps(row, ensure_ascii=False, default=_plain) + "\n")
    if output == "-":
        click.echo("".join(lines), nl=False)
        return
    write_atomically(Path(output), "".join(lines))
    click.echo(f"{len(lines):,} tasks in {output}")


def _export_log(folder: Path, output: Path, overwrite: bool) -> None:
    from callwright.measuring.folders import read_evaluated
    from callwright.measuring.inspect_log import inspect_log, log_name
    from callwright.training.run_folder import write_atomically

    log = inspect_log(read_evaluated(folder))
    target = output / log_name(log) if output.is_dir() else output
    options.refuse_existing(target, overwrite=overwrite)
    write_atomically(target, json.dumps(log, indent=1) + "\n")
    click.echo(f"{len(log['samples']):,} samples in {target}")


def _plain(value: Any) -> Any:
    """Schemas may be read-only mappings."""
    return dict(value) if isinstance(value, Mapping) else list(value)
