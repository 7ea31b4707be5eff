"""The reward component ``judge``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

from callwright.episodes.sampling import draw_seed
from callwright.errors import UsageError
from callwright.language.shortening import shortened
from callwright.machines.model_server import OPENAI, key_reaches
from callwright.plugins import Registry, default_registry
from callwright.registration import Reach
from callwright.training.spending import total
from callwright.training.teaching.cache import CachedTeacher, cached, together
from callwright.training.teaching.teacher import (
    Asker,
    AsksConcurrently,
    Teacher,
    TeacherFailure,
    TeacherReply,
    TeacherRequest,
    connected,
)
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, Score
from callwright.walk.waiting import AsyncRewardComponent
from callwright_plugins.judge.breaker import Breaker
from callwright_plugins.judge.case import Case
from callwright_plugins.judge.rubric import Rubric, load_rubric
from callwright_plugins.judge.stand_in_teacher import StandInTeacher
from callwright_plugins.judge.verdict import POOLINGS, NoVerdict, Pooled, Pooling, Verdict, pool, read_verdict

#: Options that go to the teacher under their own names; ``server`` has the others.
_PASSED: Final = ("model", "base_url", "api_key_env")


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the judge would reach for with these options: what its teacher does."""
    name = options.get("teacher", "openai")
    if name == "openai":
        yield from key_reaches(options, "OPENAI_API_KEY", OPENAI)
    elif isinstance(name, str):
        known = default_registry()
        if name in known.names("teacher"):
            for reach in known.spec("teacher", name).reach(_of_teacher(options)):
                yield Reach(reach.kind, reach.what, ("teacher", "server", *_PASSED), reach.dry_run)
        else:
            yield Reach("code", f"asks the teacher {name!r}, of which nothing is known", ("teacher",))


def _of_teacher(options: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: options[key] for key in _PASSED if options.get(key) is not None}
    return {**dict(options.get("server") or {}), **given}


class Judge(AsyncRewardComponent):
    """A model's verdict on an attempt by a rubric, in [0, 1]: the weighted mean over the criteria.

    ``rubric`` is the name of a shipped rubric or the path of a TOML file. ``teacher`` is who judges: a registered
    teacher (``openai``: ``model`` on ``base_url``, with the key in ``api_key_env``; further options of it in
    ``server``) or, in Python, a teacher. ``votes`` verdicts are asked for, each with a seed of its own (from ``seed``,
    the task and the number of the vote) and the criteria in another order, and pooled by ``pooling``: ``median``,
    ``majority`` or ``mean``. ``temperature`` is 0 for one vote and 0.7 for several unless it is given. ``cache`` is a
    file in which verdicts are kept; with ``replay`` nobody is asked.

    Every criterion below the best number is evidence, with the judge's reason; so is a difference between votes. A vote
    fails where the machinery does, where the server refuses it, and where the reply is cut off or is no verdict. Where
    no more than half of the votes are left the sample is masked: a failure is never a number. After ``stop_after`` such
    samples in a row, or when more than ``stop_share`` of the last fifty are, the command ends
    (:class:`callwright.errors.RunError`).
    """

    name = "judge"

    def __init__(
        self,
        registry: Registry,
        rubric: str | Rubric = "answer",
        *,
        teacher: str | Teacher = "openai",
        model: str | None = None,
        base_url: str | None = None,
        api_key_env: str | None = None,
        server: Mapping[str, Any] | None = None,
        votes: int = 1,
        pooling: Pooling = "median",
        temperature: float | None = None,
        max_tokens: int = 1024,
        seed: int = 0,
        cache: str | None = None,
        replay: bool = False,
        stop_after: int = 20,
        stop_share: float = 0.5,
    ) -> None:
        if type(votes) is not int or votes < 1:
            raise UsageError(f"'votes' of the judge is a whole number, 1 or more, not {votes!r}")
        if pooling not in POOLINGS:
            raise UsageError(f"'pooling' of the judge is one of {', '.join(POOLINGS)}, not {pooling!r}")
        if replay and cache is None:
            raise UsageError("a judge with 'replay' needs the 'cache' that it replays")
        self.rubric = rubric if isinstance(rubric, Rubric) else load_rubric(rubric)
        given = {"model": model, "base_url": base_url, "api_key_env": api_key_env, "server": server}
        made = _teacher(registry, teacher, given)
        self.teacher: Teacher = made if cache is None else cached(made, cache, replay=replay)
        self.votes, self.pooling, self.seed = votes, pooling, seed
        self.temperature = (0.0 if votes == 1 else 0.7) if temperature is None else temperature
        self.max_tokens = max_tokens
        self.breaker = Breaker(f"{self.rubric.name!r} ({_model_of(made)})", stop_after, stop_share)
        at_once = made.concurrency if isinstance(made, AsksConcurrently) else 1
        self.concurrency = max(1, at_once // votes)
        #: What was asked in this process, and what it took; replies of the cache took nothing.
        self.usage: Mapping[str, float] = {}
        self._opened: tuple[AsyncExitStack, Asker] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "usage": {}}  # a connection belongs to this process

    async def setup(self) -> None:
        """Connect to the teacher; the breaker begins anew."""
        self.breaker.reset()
        stack = AsyncExitStack()
        self._opened = stack, await stack.enter_async_context(connected(self.teacher))

    async def close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened[0].aclose()

    def prepare(self, attempt: Attempt) -> None:
        """Execute the attempt, if the rubric shows what its calls came to."""
        if self.rubric.executes:
            super().prepare(attempt)
        else:
            _ = attempt.parsed

    @property
    def network_checks(self) -> Collection[str]:
        """All checks, if a server would be asked."""
        inner = self.teacher.teacher if isinstance(self.teacher, CachedTeacher) else self.teacher
        if not isinstance(inner, AsksConcurrently) or (isinstance(self.teacher, CachedTeacher) and self.teacher.replay):
            return ()
        return ("*",)

    def stand_in(self) -> Judge:
        """The same judge, whose verdicts are drawn from the text of the request."""
        return Judge(default_registry(), self.rubric, teacher=StandInTeacher(), votes=self.votes, pooling=self.pooling)

    def requests(self, case: Case, task: str) -> list[TeacherRequest]:
        """What the judge is asked about a case of a task: a request for each vote."""
        count = len(self.rubric.criteria)
        return [
            case.request(
                seed=draw_seed(self.seed, task, vote),
                # Each vote begins with another criterion, so that none gains by where it stands.
                order=[(index + vote) % count for index in range(count)],
                temperature=self.temperature,
                max_tokens=self.max_tokens,
            )
            for vote in range(self.votes)
        ]

    async def score(self, attempt: Attempt) -> Score:  # type: ignore[override]
        """The pooled verdict. Raises :class:`callwright.errors.RunError` where too many attempts got none."""
        broken = attempt.whole_trace.masked if self.rubric.executes else None
        if broken is not None:  # not the judge's doing, and nothing to be judged
            return self._masked(broken)
        self.breaker.check()
        case = Case.of(attempt, self.rubric)
        requests = self.requests(case, attempt.task.id)
        if self._opened is None:  # nobody set it up: it is asked by itself, outside of a recipe
            async with connected(self.teacher) as asker:
                answers = await together([asker.ask_one(request) for request in requests])
        else:
            answers = await together([self._opened[1].ask_one(request) for request in requests])
        asked = [one for one in answers if isinstance(one, TeacherFailure) or not one.cached]
        taken = [{} if isinstance(one, TeacherFailure) else one.usage for one in asked]
        self.usage = total([self.usage, {"requests": len(asked)}, *taken])
        read = [self._read(answer, case) for answer in answers]
        verdicts = [one for one in read if isinstance(one, Verdict)]
        failures = [one.reason for one in read if isinstance(one, NoVerdict)]
        if 2 * len(verdicts) <= self.votes:
            one = (
                "the judge gave no verdict"
                if self.votes == 1
                else (f"the judge gave {len(verdicts)} verdicts in {self.votes} votes")
            )
            reason = f"{one}: {'; '.join(dict.fromkeys(failures))}"
            self.breaker.note(reason)
            return self._masked(reason)
        self.breaker.note(None)
        return self._scored(pool(verdicts, self.pooling), failures)

    def _read(self, answer: TeacherReply | TeacherFailure, case: Case) -> Verdict | NoVerdict:
        if isinstance(answer, TeacherFailure):
            return NoVerdict(shortened(answer.reason, 400))
        if answer.truncated:
            return NoVerdict(f"the reply was cut off after {self.max_tokens} tokens ('max_tokens')")
        return read_verdict(answer.text, self.rubric, case.word)

    def _scored(self, pooled: Pooled, failures: list[str]) -> Score:
        high = self.rubric.scale[1]
        evidence = [
            Evidence(
                criterion.name,
                f"{criterion.name} {pooled.points[criterion.name]:g} of {high}: {pooled.reasons[criterion.name]}",
                path=f"criteria.{criterion.name}",
                expected=str(high),
                found=f"{pooled.points[criterion.name]:g}",
            )
            for criterion in self.rubric.criteria
            if pooled.points[criterion.name] < high
        ]
        for name in pooled.spread:
            votes = pooled.votes[name]
            said = ", ".join(map(str, votes))
            evidence.append(
                Evidence(
                    "votes_differ", f"{len(votes)} votes on {name} differ: {said}", path=f"criteria.{name}", found=said
                )
            )
        if failures:
            lost = f"{len(failures)} of {self.votes} votes gave no verdict: {'; '.join(dict.fromkeys(failures))}"
            evidence.append(Evidence("votes_lost", lost))
        return Score(self.rubric.value(pooled.points), 0.0, 1.0, tuple(evidence))

    def _masked(self, reason: str) -> Score:
        return Score(self.low, self.low, self.high, (Evidence("no_verdict", reason),), reason)


def _teacher(registry: Registry, teacher: str | Teacher, given: Mapping[str, Any]) -> Teacher:
    server = given["server"]
    if server is not None and not isinstance(server, Mapping):
        raise UsageError(f"'server' of the judge is a table of options of its teacher, not {server!r:.60}")
    for key in _PASSED:
        if key in (server or {}):
            raise UsageError(f"'{key}' of the judge stands beside 'server', not in it")
    options = _of_teacher(given)
    if not isinstance(teacher, str):
        if options:
            raise UsageError("a judge that is given a teacher takes no 'model', 'base_url', 'api_key_env' or 'server'")
        return teacher
    if teacher == "openai" and "model" not in options:
        raise UsageError("the judge needs a 'model', and 'base_url' where it is not one of OpenAI's (docs/judges.md)")
    made: Teacher = registry.create("teacher", teacher, **options)
    return made


def _model_of(teacher: Teacher) -> str:
    return str(teacher.settings("judge").get("model") or teacher.name)


def default_judge(rubric: str | Rubric = "answer", **options: Any) -> Judge:
    """A judge of the plugins that are installed."""
    return Judge(default_registry(), rubric, **options)
