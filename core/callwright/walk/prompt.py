"""Prompts: what a model is told for a task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from attrs import frozen

from callwright.capability import has
from callwright.environments.hazards.policy import Hazards
from callwright.environments.sessions import briefing_of
from callwright.environments.telling import tell
from callwright.errors import CannotExpress, ComponentError, DataError, InfrastructureFailure, UsageError
from callwright.language.messages import Message, ToolCall
from callwright.language.native import turn_text
from callwright.language.parser import Parser
from callwright.language.program import Call, Program, handle_of, plain
from callwright.language.speech import speaking, spoken
from callwright.language.teaching import TeachesWhatIsAllowed
from callwright.language.wording import NOTHING_TO_CALL, SETTLED, native_instructions
from callwright.tools.costing import listed_costs
from callwright.tools.descriptions import said_once, shape_of
from callwright.tools.reading import SENSITIVE, TABLE
from callwright.tools.spec import ToolSpec
from callwright.walk.calls.handles import TOLD as HANDLES
from callwright.walk.calls.handles import handed_on, shows_handles
from callwright.walk.completion import Completion
from callwright.walk.corpora.capabilities import DrawsShots
from callwright.walk.execution import execute
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Corpus, Task
from callwright.walk.trace import CallRecord

if TYPE_CHECKING:
    from callwright.plugins import Registry

#: The key of a task's facts under which its own prompt stands, a sequence of messages: a benchmark that words all of it
#: itself is asked in these words, whatever form is asked for, and answered in text.
PROMPT: Final = "prompt"


def build_messages(
    task: Task,
    parser: Parser,
    registry: Registry | None = None,
    shots: Sequence[Task] = (),
    *,
    native: bool = False,
    limits: TurnLimits | None = None,
) -> tuple[Message, ...]:
    """The system message (the form's instructions, then the offered tools) and the query (TIER, appendix C).

    What an environment tells of its world (:class:`callwright.environments.protocol.Briefs`) stands between the two,
    under a title of its own; environments that tell nothing, as those of the papers' corpora, leave no trace of it.
    For a task with a user the form says how to speak to it. The history of a task's opening stands before its query.

    ``shots`` are worked examples between the two: the query of each as the user's message, its reference program in
    the form of ``parser`` as the answer. One that is offered other tools than the task lists them in its own message.
    ``native`` is for samplers that hand the tools to their model themselves: the system message says in plain words
    when to call and when not, without a form and without a list, and the calls of ``shots`` are made, one after another
    where one needs another's result, and shown with what came of them.

    ``limits`` are the turns that an attempt may have: forms that can
    (:class:`callwright.language.teaching.TeachesWhatIsAllowed`) teach what they allow. Without them the instructions
    hold for several turns.

    A task that has a prompt of its own (:data:`PROMPT` among its facts) gets that one, and nothing is added to it.

    Plugins that listen to ``callwright_prompt`` may change the messages, which they get in the wire format.

    Raises :class:`callwright.errors.DataError` for a shot without a reference program,
    :class:`callwright.errors.CannotExpress` for one that the form cannot write, and
    :class:`callwright.errors.ComponentError` where a plugin left something else than messages.
    """
    own = task.facts.get(PROMPT)
    if own is not None:
        return _heard(own, task, registry)
    if native:
        return _heard(_native_messages(task, parser, shots, limits), task, registry)
    offered, briefing = _offered(task), _briefing(task)
    told = f"# World\n{_with_costs(task, briefing)}\n\n" if briefing else ""
    answered = task.user is not None and (limits is None or limits.user_turns > 1)
    spoken = f"# The user\n{speaking(parser)}\n\n" if answered else ""
    taught = _instructions(parser, limits) + _of_handles(task, parser, limits)
    messages = [Message.system(f"{taught}\n\n{told}{spoken}# Tools\n{offered}\n")]
    for shot in shots:
        if shot.program is None:
            raise DataError(f"task {shot.id!r} cannot be an example in a prompt: it has no reference program")
        own = _offered(shot)
        # The list of the system message belongs to the last query, so a list for an example says where it ends.
        note = (
            "" if own == offered else f"# Tools (for this request only, in place of those above)\n{own}\n\n# Request\n"
        )
        messages.append(Message.user(_other_world(shot, briefing) + note + shot.query))
        messages.append(Message.assistant(parser.render(shot.program)))
    return _heard([*messages, *_begun(task, parser), *asked(task)], task, registry)


def with_listed_tools(messages: Sequence[Message], tools: Iterable[ToolSpec], parser: Parser) -> list[Message]:
    """Messages of an agent, for a model whose template shows no tools.

    The system message begins with the form's instructions and the list of the tools, as :func:`build_messages` writes
    them, and goes on with what the agent says there itself.
    """
    taught = f"{parser.instructions()}\n\n# Tools\n{described(tools)}\n"
    if messages and messages[0].role == "system":
        return [Message.system(f"{taught}\n{messages[0].text}"), *messages[1:]]
    return [Message.system(taught), *messages]


def _instructions(parser: Parser, limits: TurnLimits | None) -> str:
    if limits is None or not isinstance(parser, TeachesWhatIsAllowed):
        return parser.instructions()
    return parser.instructions_within(steps=not limits.single, requests=limits.user_turns > 1)


def _of_handles(task: Task, parser: Parser, limits: TurnLimits | None) -> str:
    """What is told of handles, where there are several turns and results have them."""
    several = limits is not None and not limits.single
    return f"\n\n{HANDLES}" if several and shows_handles(task, parser) else ""


def _native_messages(task: Task, parser: Parser, shots: Sequence[Task], limits: TurnLimits | None) -> list[Message]:
    briefing = _briefing(task)
    told = f"\n\n# World\n{_with_costs(task, briefing)}\n" if briefing else ""
    handles = _of_handles(task, parser, limits)
    messages = [Message.system(native_instructions(steps=limits is None or not limits.single) + handles + told)]
    for shot in shots:
        messages.append(Message.user(_other_world(shot, briefing) + shot.query))
        messages += _native_example(shot, handles=handles != "")
    return [*messages, *(task.opening.shown if task.opening is not None else ()), *asked(task)]


def _begun(task: Task, parser: Parser) -> Iterator[Message]:
    """The conversation before the query, the assistant's part of it in the form of ``parser``."""
    for message in task.opening.shown if task.opening is not None else ():
        written = message.role == "assistant"
        yield Message.assistant(_as_written(message, parser)) if written else message


def _as_written(message: Message, parser: Parser) -> str:
    """What the assistant wrote, in the form: words to the user where the form has their place, and not in a thought."""
    text = turn_text(message, parser, native=True)
    words = message.text.strip()
    if message.tool_calls or not words or words in _spoken(text, parser):
        return text
    try:
        made = parser.render(Program(thought=message.thought, text=words))
    except CannotExpress:
        return text
    return made if _spoken(made, parser) == words else text


def _spoken(text: str, parser: Parser) -> str:
    read = parser.parse(text)
    return spoken(read if isinstance(read, Program) else None, Completion(text))


def asked(task: Task) -> tuple[Message, ...]:
    """The query; a task that goes on from the last message of its history has none."""
    return () if not task.query and task.opening is not None and task.opening.history else (Message.user(task.query),)


def _native_example(shot: Task, *, handles: bool) -> Iterator[Message]:
    """The reference program as calls with their results: all at once, or one by one where one needs another's."""
    program = shot.program
    if program is None:
        raise DataError(f"task {shot.id!r} cannot be an example in a prompt: it has no reference program")
    if not program.calls:
        yield Message.assistant(NOTHING_TO_CALL)
        return
    trace = execute(
        program,
        shot.environment,
        shot.tools,
        scenario=shot.scenario,
        seed=shot.seed,
        clock=shot.clock,
        hazards=Hazards(),
        opening=shot.opening,
    )
    if trace.masked is not None:
        raise InfrastructureFailure(f"task {shot.id!r} cannot be an example in a prompt: {trace.masked}")
    pairs = list(zip(program.calls, trace.records, strict=True))
    chained = any(call.located for call in program.calls)
    for some in [[pair] for pair in pairs] if chained else [pairs]:
        written = [_written(call, record, handles=handles) for call, record in some]
        calls = [ToolCall("", record.tool, text) for (_, record), text in zip(some, written, strict=True)]
        yield Message.assistant("", calls)
        for call, record in some:
            handle = {"handle": handle_of(call.id)} if handles else {}
            yield Message.tool(tell(record.outcome, id=record.call, name=record.tool, **handle))
    yield Message.assistant(SETTLED)


def _written(call: Call, record: CallRecord, *, handles: bool) -> str:
    """The arguments of a call, as a model writes them that has seen the results before it."""
    given = plain(record.arguments)
    made = {key: handed_on(value, given[key]) for key, value in call.arguments.items()} if handles else given
    return json.dumps(made, ensure_ascii=False)


def _heard(messages: Sequence[Message], task: Task, registry: Registry | None) -> tuple[Message, ...]:
    """The messages, as plugins leave them."""
    if registry is not None and registry.listens("callwright_prompt"):
        return _changed(messages, task, registry)
    return tuple(messages)


def _changed(messages: Sequence[Message], task: Task, registry: Registry) -> tuple[Message, ...]:
    """What the plugins made of a list of plain dictionaries."""
    given: list[dict[str, Any]] = [message.to_openai() for message in messages]
    registry.hook.callwright_prompt(task=task, messages=given)
    read = []
    for place, message in enumerate(given):
        try:
            read.append(Message.from_openai(message))
        except DataError as error:
            names = ", ".join(one.plugin_name for one in registry.hook.callwright_prompt.get_hookimpls())
            raise ComponentError(
                f"after the hook 'callwright_prompt' messages[{place}] of task {task.id!r} is not a message: {error}. "
                f"This is a bug of a plugin that listens to it ({names})"
            ) from error
    return tuple(read)


def draw_shots(corpus: Corpus, task: Task, count: int) -> Sequence[Task]:
    """``count`` worked examples for a task, drawn by the corpus' own method ``shots(task, count)``.

    Raises :class:`callwright.UsageError` for a corpus that has no such method or not as many examples, and
    :class:`callwright.errors.DataError` if the task is among its own examples.
    """
    if count == 0:
        return ()
    if not has(corpus, DrawsShots):
        raise UsageError(f"corpus {corpus.name!r} offers no examples for prompts (it has no method 'shots')")
    shots = corpus.shots(task, count)
    if len(shots) != count:
        raise UsageError(f"corpus {corpus.name!r} has {len(shots)} examples for task {task.id!r}, not {count}")
    if any(shot.id == task.id for shot in shots):
        raise DataError(f"corpus {corpus.name!r} gives task {task.id!r} as an example of itself, answer included")
    return shots


@runtime_checkable
class TellsByShots(Protocol):
    """A corpus whose examples may be drawn by what the right answer to a task looks like."""

    @property
    def oracle_shots(self) -> bool:
        """Whether they are: then an accuracy with examples says less of a model, and must say so itself."""


def oracle_shots(corpus: Corpus, shots: int) -> bool:
    """Whether prompts hold examples that give away what the right answer looks like."""
    return shots > 0 and isinstance(corpus, TellsByShots) and corpus.oracle_shots


def _briefing(task: Task) -> str:
    return briefing_of(task.environment, task.scenario, task.seed)


def _with_costs(task: Task, briefing: str) -> str:
    """The briefing, and what calls of the offered tools cost where the task tells it."""
    if not task.tells_costs:
        return briefing
    return "\n\n".join(
        [briefing, *(["\n".join(costs)] if (costs := listed_costs(task.tools[name] for name in task.offered)) else [])]
    )


def _other_world(shot: Task, briefing: str) -> str:
    """What an example says of its own world, where it plays in another one than the query."""
    own = _briefing(shot)
    return "" if own == briefing else f"# World (for this request only)\n{own or 'Another one.'}\n\n"


def _offered(task: Task) -> str:
    return described(task.offered.values()) or "(none)"


def described(tools: Iterable[ToolSpec]) -> str:
    """Tools as they are listed: a line each. Tasks that share their tools share the list, which is written once."""
    return _listed(_Same(tuple(tools)))


@frozen(eq=False)
class _Same:
    """Tools that are the very same objects, so that nothing of them has to be compared."""

    specs: tuple[ToolSpec, ...]

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.specs)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and [*map(id, self.specs)] == [*map(id, other.specs)]


@lru_cache(maxsize=256)
def _listed(tools: _Same) -> str:
    return "\n".join(describe_tools(tools.specs))


def describe_tools(specs: Iterable[ToolSpec]) -> list[str]:
    """The lines of a listing (:func:`describe_tool`). What brief tools say of a parameter is said once."""
    heard: dict[str, dict[str, Any]] = {}
    returned: dict[str, str] = {}
    return [_in_few_words(spec, heard, returned) if spec.brief else describe_tool(spec) for spec in specs]


def _in_few_words(spec: ToolSpec, heard: dict[str, dict[str, Any]], returned: dict[str, str]) -> str:
    """A brief tool as one line; ``heard`` and ``returned`` are what the listing has said before."""
    function = said_once([spec.to_openai()["function"]], heard)[0]
    parameters = _shown(function["parameters"])
    if isinstance(parameters, dict) and parameters.get("type") == "object":  # as those of every tool are
        del parameters["type"]
    function["parameters"] = parameters
    returns = shape_of(spec.result, spec.name, returned)
    return json.dumps(
        {**function, **({"returns": returns} if returns else {})}, ensure_ascii=False, separators=(",", ":")
    )


def describe_tool(spec: ToolSpec) -> str:
    """A tool as one line of JSON: name, description, parameters, and what it returns where the schema says."""
    if spec.brief:
        return _in_few_words(spec, {}, {})
    shown: dict[str, object] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": _shown(spec.parameters),
    }
    if spec.result is not None:
        shown["returns"] = _shown(spec.result)
    return json.dumps(shown, ensure_ascii=False)


def _shown(schema: object) -> object:
    """A schema as a model sees it: the mark of a table in words."""
    if isinstance(schema, Mapping):
        shown = {key: _shown(value) for key, value in schema.items() if key not in (TABLE, SENSITIVE)}
        if schema.get(TABLE) is True:
            said = str(schema.get("description") or "").rstrip()
            shown["description"] = f"{said} (a result of an earlier call)".lstrip()
        return shown
    return [_shown(value) for value in schema] if isinstance(schema, list) else schema
