"""The explorer: calls that are guided by what no call has come to yet.

Every call is made in a state; a state that a call comes to is kept where its digest is new and the tool has not led to
many states yet. Three kinds of steps take turns:

- a **try**: a tool that is not reached, or seldom tried, in a state, with drawn arguments;
- a **repair**: another call in a state where a call failed, about the same things; then the failed call again. What it
  repairs is needed first;
- a **return**: in a new state, the calls that failed, or executed, in the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from random import Random
from typing import Any, Final

from attrs import define, field, frozen

from callwright.environments.protocol import Environment, Outcome, OutOfProcess, Suggests, declares
from callwright.language.program import Call
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.synthesis.exploration.drawing import Drawer, shared_values
from callwright_plugins.synthesis.exploration.enabling import enabler_weights
from callwright_plugins.synthesis.exploration.free import SOME_DAY
from callwright_plugins.synthesis.exploration.states import Failed, Laboratory, OutOfCalls, State
from callwright_plugins.synthesis.exploration.tape import Tape
from callwright_plugins.synthesis.exploration.values import Bank, Key, Memory, key_of, leaves, names_something

_DEEPEST_STATE: Final = 8
#: Of a server, after so many calls nothing is made again at once: each call there costs those before it, too.
_RETURNED: Final = 2
_MOST_STATES: Final = 600
_STATES_A_TOOL: Final = 14
_SUCCESSES: Final = 40
_TOLD: Final = 40
#: Calls in a row that may repair one failure: five doors may have to be locked.
_REPAIRS: Final = 6
_TOLD_WORD: Final = re.compile(r"'([^']{1,80})'|\"([^\"]{1,80})\"|([A-Za-z]*[0-9][\w:.-]*[\w])|\b([0-9])\b|(/[\w./-]+)")
#: How often it is looked whether a call of one tool needs one of another before it.
_DOUBTS: Final = 3
#: Tools that are tried in a new state about the things of the call that led there.
_LOOKS: Final = 6


@frozen
class Success:
    """A call that executed: the path to its state, the call and the kind of its outcome."""

    path: tuple[Call, ...]
    call: Call
    kind: str


@frozen
class Turn:
    """A call that another one made possible: it failed after ``path`` with ``code``, and executed after ``enabler``."""

    path: tuple[Call, ...]
    enabler: Call
    call: Call
    code: str
    kind: str


@frozen
class Told:
    """What a call told after a path."""

    path: tuple[Call, ...]
    call: Call
    value: Any


@frozen
class Reached:
    """The outcome of a call, the state that it came to if that is another one, and whether that may yet be kept."""

    outcome: Outcome
    state: State | None = None
    kept: bool = False


@define(eq=False)
class World:
    """What was found in one scenario and seed."""

    scenario: str
    seed: int
    successes: dict[str, dict[tuple[str, ...], Success]] = field(factory=dict)
    failures: dict[tuple[str, str], tuple[Call, ...]] = field(factory=dict)
    failure_kinds: dict[tuple[str, str], str] = field(factory=dict)
    turns: dict[tuple[str, str], Turn] = field(factory=dict)
    memory: Memory | None = None
    knowledge: dict[Key, None] = field(factory=dict)
    now: datetime = SOME_DAY
    states: int = 0
    calls: int = 0
    #: By tool: results, each with the call that told it.
    told: dict[str, list[Told]] = field(factory=dict)

    def paths(self, tool: str) -> list[Success]:
        """The successes of a tool, the shortest first."""
        return sorted(self.successes.get(tool, {}).values(), key=lambda found: (len(found.path), found.kind != "ok"))


class Explorer:
    """Explores one world after the other; what it learns of tools in one is of use in the next."""

    def __init__(self, environment: Environment, tools: list[str], tape: Tape | None = None) -> None:
        self.environment, self.tape = environment, tape
        self.tools = tools
        self.specs = {name: environment.tools[name] for name in tools}
        self.elsewhere = declares(environment, OutOfProcess)
        self.writes = [name for name in tools if not self.specs[name].read_only]
        self.bank = Bank()
        self.rng = Random(0)
        #: By code and tool: how often a call of the tool repaired a failure of this code.
        self.enabled: dict[tuple[str, str], int] = {}
        self.drawer = Drawer(self.specs, self.bank, self.rng, SOME_DAY)
        if declares(environment, Suggests) and environment.suggestions is not None:  # type: ignore[attr-defined]
            environment.suggestions.check(environment.tools)  # type: ignore[attr-defined]
            self.drawer.suggestions = environment.suggestions  # type: ignore[attr-defined]

    def explore(self, scenario: str, seed: int, calls: int, reporter: Reporter = SILENT) -> World:
        """Explore a world with at most so many calls. The same calls for the same arguments, on every machine."""
        self.bank.forget()
        self.rng = Random(f"explore/{self.environment.name}/{scenario}/{seed}")
        self.world = World(scenario, seed)
        opened = Laboratory if self.tape is None else self.tape.laboratory
        lab = self.lab = opened(self.environment, scenario, seed, calls, reporter)
        try:
            #: Whether nobody tells states apart, as with a server that has no place of its own to look at: there every
            #: call that may have changed something leads to another state, and few are worth beginning in again.
            self.blind = self.elsewhere and not lab.tells_states()
            self.world.now = lab.now()
            self.drawer.begin(self.rng, self.world.now)
            self.states = [lab.root]
            self.digests = {lab.root.digest: None}
            #: By place: the states whose own calls told a value of it.
            self.holding: dict[int, list[State]] = {}
            self.led: dict[str, int] = {}
            self.asked: dict[int, int] = {}
            self.known: dict[Key, None] = {}
            self.seen: dict[tuple[str, str], int] = {}
            self.looked: dict[tuple[str, str], int] = {}
            self.doubted: dict[tuple[str, str], int] = {}
            self.enablers: dict[tuple[str, str, str], int] = {}
            self.repaired: dict[tuple[str, str], int] = {}
            self._meet(None)
            try:
                self._discover()
                while True:
                    self._step()
            except OutOfCalls:
                pass
        finally:
            lab.close()
        self.world.states, self.world.calls = len(self.states), lab.made
        self.world.memory = self.bank.remembered()
        return self.world

    # Steps ------------------------------------------------------------------------------------------------------------

    def _discover(self) -> None:
        """Read what there is: each tool that only reads, with what the others told before.

        Of a server every other tool is tried first, too, those that need least before those that need more: its tools
        may read though it does not say so, its calls are few, and a path of several costs as many again.
        """
        reads = [name for name in self.tools if self.specs[name].read_only]
        if self.elsewhere:
            for _ in range(2):
                for name in sorted(self.tools, key=lambda one: len(self.specs[one].parameters.get("required", ()))):
                    if name not in self.world.successes:
                        self._try(self.states[0], name)
            self._ask_around()
        for round_ in range(3):
            for name in reads:
                for _ in range(2 if round_ == 0 else 4):
                    self._try(self.states[0], name)
            self._ask_around()

    def _step(self) -> None:
        drawn = self.rng.random()
        if drawn < 0.3:
            self._repair()
        else:
            tool = self._some_tool()
            state = self._some_state(tool)
            self._try(self.states[0] if self._again(state, tool) else state, tool)
        if self.rng.random() < 0.01:
            self._ask_around()

    def _again(self, state: State, tool: str) -> bool:
        """Whether a tool of a server was called twice in a row already: another call costs those before it again, and
        where nobody tells states apart it is no news.
        """
        return self.elsewhere and [call.tool for call in state.path[-2:]] == [tool, tool]

    def _some_tool(self) -> str:
        reached = self.world.successes
        weights = []
        for name in self.tools:
            found = len(reached.get(name, ()))
            weights.append(8.0 if not found else (1.0 if self.specs[name].read_only else 2.0) / (1 + found / 6))
        return self.rng.choices(self.tools, weights)[0]

    def _some_state(self, tool: str) -> State:
        states, rng = self.states, self.rng
        if len(states) == 1 or (self.blind and rng.random() < 0.5):
            return states[0]
        if tool and rng.random() < 0.6:
            held = [place for place in self.drawer.wants(tool) if place in self.holding]
            if held:
                able = self.holding[rng.choice(held)]
                few = rng.sample(able, min(4, len(able)))
                return min(few, key=lambda state: (state.tried.get(tool, 0), rng.random()))
        if rng.random() < 0.35:
            return states[0]
        few = rng.sample(states, min(4, len(states))) if rng.random() < 0.5 else states[-8:]
        return min(few, key=lambda state: (state.tried.get(tool, 0), rng.random()))

    def _try(self, state: State, tool: str, fixed: Mapping[Key, None] | None = None) -> Reached | None:
        state.tried[tool] = state.tried.get(tool, 0) + 1
        drawn = None
        if fixed is None and self.rng.random() < 0.45:
            near = self._near(state, tool)
            if near is not None:
                drawn = self.drawer.vary(tool, near.arguments, near.message, state.local)
        if drawn is None:
            drawn = self.drawer.arguments(tool, state.local, fixed)
        if drawn is None:
            return None
        reached = self._make(state, Call(len(state.path), tool, drawn.arguments))
        outcome = reached.outcome
        if outcome.kind not in ("unknown", "infrastructure_error"):
            self.drawer.learn(drawn, executed=outcome.executed, message=outcome.message)
        return reached

    def _near(self, state: State, tool: str) -> Failed | None:
        """A call of a tool that failed here or on the way here: rather with a code that is rare, which came further."""
        found: dict[str, Failed] = {}
        where: State | None = state
        while where is not None:
            for (name, code), failed in where.failed.items():
                if name == tool:
                    found.setdefault(code, failed)
            where = where.parent
        if not found:
            return None
        codes = list(found)
        return found[self.rng.choices(codes, [1.0 / self.seen[tool, code] for code in codes])[0]]

    def _repair(self) -> None:
        """Make another call where one failed, about the same things or those that its failure names, and try again."""
        world, rng = self.world, self.rng
        states = [
            state for state in (self.states[0], *rng.sample(self.states, min(3, len(self.states)))) if state.failed
        ]
        if not states or not self.writes:
            return
        state = rng.choice(states)
        failures = list(state.failed)
        missing = [one for one in failures if one[0] not in world.successes]
        if missing and rng.random() < 0.6:
            failures = missing
        tool, code = rng.choices(failures, [1.0 / (1 + self.repaired.get(one, 0)) for one in failures])[0]
        self.repaired[tool, code] = self.repaired.get((tool, code), 0) + 1
        for _ in range(_REPAIRS):
            failed = state.failed.get((tool, code))
            if failed is None or len(state.path) >= _DEEPEST_STATE:
                return
            about = {**shared_values(failed.arguments), **{key_of(told): None for told in told_in(failed.message)}}
            enabler = self._some_enabler(tool, code, failed.message)
            self.enablers[tool, code, enabler] = self.enablers.get((tool, code, enabler), 0) + 1
            if self._again(state, enabler):
                return
            reached = self._try(state, enabler, about)
            if reached is None or reached.state is None:
                return
            child = reached.state
            again = self._make(child, Call(len(child.path), tool, failed.arguments))
            if again.outcome.executed:
                if reached.kept:
                    self.keep(child)
                self._note_turn(state, child.path[-1], tool, failed, code, again.outcome.kind)
                return
            if (again.outcome.code or again.outcome.kind, again.outcome.message) == (code, failed.message):
                return
            # The failure is another one: it may be halfway there.
            code, state = again.outcome.code or again.outcome.kind, child

    def _some_enabler(self, tool: str, code: str, message: str) -> str:
        """A tool that may repair a failure: what it names, what the failing tool names, and what repaired it before."""
        worth = enabler_weights(self.specs[tool], code, message, self.writes, self.enabled)
        tried = [1 + self.enablers.get((tool, code, name), 0) / 2 for name in self.writes]
        weights = [one / often for one, often in zip(worth, tried, strict=True)]
        return self.rng.choices(self.writes, weights)[0]

    def _note_turn(self, before: State, enabler: Call, tool: str, failed: Failed, code: str, kind: str) -> None:
        self.enabled[code, enabler.tool] = self.enabled.get((code, enabler.tool), 0) + 1
        call = Call(len(before.path) + 1, tool, failed.arguments)
        known = self.world.turns.get((enabler.tool, tool))
        if known is None or len(before.path) < len(known.path):
            self.world.turns[enabler.tool, tool] = Turn(before.path, enabler, call, code, kind)

    # Calls ------------------------------------------------------------------------------------------------------------

    def _make(self, state: State, call: Call) -> Reached:
        """Make a call in a state, take up what it says, and go on in the state that it comes to if that is new."""
        outcome, digest = self.lab.call(state, call.tool, call.arguments)
        if outcome.executed:
            new = self._take_up(state, call, outcome)
            reached = self._arrive(state, call, digest, outcome, new)
            if outcome.kind in ("ok", "partial"):
                self._doubt(state, call, outcome.kind)
            return reached
        if outcome.failed:
            self._fail(state, call, outcome)
        return Reached(outcome)

    def _take_up(self, state: State, call: Call, outcome: Outcome) -> list[tuple[int, Key]]:
        world, spec = self.world, self.specs[call.tool]
        found = world.successes.setdefault(call.tool, {})
        way = (outcome.kind, *(step.tool for step in state.path))
        first = way not in found
        if first and len(found) < _SUCCESSES:
            found[way] = Success(state.path, call, outcome.kind)
        state.executed[call.tool] = (dict(call.arguments), outcome.kind)
        told = world.told.setdefault(call.tool, [])
        if outcome.kind != "empty":
            if len(told) < _TOLD:
                told.append(Told(state.path, call, outcome.value))
            elif first or self.rng.random() < 0.1:
                told[self.rng.randrange(_TOLD // 2, _TOLD)] = Told(state.path, call, outcome.value)
        new: list[tuple[int, Key]] = []
        if not spec.read_only or first or self.rng.random() < 0.3:
            new = self.bank.absorb(call.tool, call.arguments, outcome.value)
        if spec.read_only and state.path:
            _add(state.local, new)
        return new

    def _doubt(self, state: State, call: Call, kind: str) -> None:
        """Whether a call needed the last one of its path: make it in the state before, once or twice for two tools."""
        before = state.parent
        if before is None:
            return
        enabler = state.path[-1]
        pair = enabler.tool, call.tool
        if pair in self.world.turns or self.doubted.get(pair, 0) >= _DOUBTS or enabler.tool == call.tool:
            return
        if any(key in state.made for _, key in leaves(call.arguments)):
            return  # what it was given came from the last call: without it there is nothing to call it with
        self.doubted[pair] = self.doubted.get(pair, 0) + 1
        outcome, _ = self.lab.call(before, call.tool, call.arguments)
        if outcome.kind == "empty" or (outcome.failed and outcome.kind != "schema_error"):
            code = outcome.code or outcome.kind
            if outcome.failed:
                self._fail(before, call, outcome)
            self._note_turn(before, enabler, call.tool, Failed(dict(call.arguments), outcome.message), code, kind)

    def _fail(self, state: State, call: Call, outcome: Outcome) -> None:
        code = outcome.code or outcome.kind
        self.seen[call.tool, code] = self.seen.get((call.tool, code), 0) + 1
        path = (*state.path, call)
        known = self.world.failures.get((call.tool, code))
        if known is None or len(path) < len(known):
            self.world.failures[call.tool, code] = path
            self.world.failure_kinds[call.tool, code] = outcome.kind
        state.failed[call.tool, code] = Failed(dict(call.arguments), outcome.message)
        self.drawer.hear(call.tool, outcome.message)
        given = {key for _, key in leaves(call.arguments)}
        told = [one for one in told_in(outcome.message) if key_of(one) not in given]
        if told:
            self.bank.overhear(call.tool, code, told)

    def _arrive(self, state: State, call: Call, digest: str, outcome: Outcome, new: list[tuple[int, Key]]) -> Reached:
        if digest == state.digest or len(state.path) >= _DEEPEST_STATE:
            return Reached(outcome)
        child = self.lab.settle(state, len(self.states), call, digest)
        child.local = {place: list(keys) for place, keys in state.local.items()}
        _add(child.local, new)
        asked = {key for _, key in leaves(call.arguments)}
        child.made = {key: None for _, key in leaves(outcome.value) if key[0] == "string" and key not in asked}
        if digest in self.digests:
            return Reached(outcome, child)
        self.digests[digest] = None
        led = self.led.get(call.tool, 0)
        if len(self.states) >= _MOST_STATES or (led >= _STATES_A_TOOL and self.rng.random() > 0.08):
            return Reached(outcome, child, kept=True)
        self.led[call.tool] = led + 1
        self.keep(child)
        if not self.elsewhere or len(child.path) <= _RETURNED:
            self._return(child, state)
        return Reached(outcome, child)

    def keep(self, child: State) -> None:
        """Keep a state to begin in again."""
        if len(self.states) < _MOST_STATES:
            child.number = len(self.states)
            for place in child.local:
                if self.bank.places[place].origin == "result":
                    self.holding.setdefault(place, []).append(child)
            self.states.append(child)

    def _return(self, child: State, parent: State) -> None:
        """Make the calls again that failed, or executed, in the state before."""
        reached = self.world.successes
        failures = list(parent.failed)
        if len(failures) > 14:
            failures = self.rng.sample(failures, 14)
        missing = [one for one in parent.failed if one[0] not in reached]
        for tool, code in dict.fromkeys([*missing[:14], *failures]):
            failed = parent.failed[tool, code]
            again = self._make(child, Call(len(child.path), tool, failed.arguments))
            if again.outcome.executed:
                self._note_turn(parent, child.path[-1], tool, failed, code, again.outcome.kind)
        done = list(parent.executed.items())
        for tool, (arguments, kind) in self.rng.sample(done, min(8, len(done))):
            if self.elsewhere and tool == child.path[-1].tool:
                continue  # each call there costs those before it, and where nobody tells states apart it never ends
            again = self._make(child, Call(len(child.path), tool, arguments))
            if kind == "empty" and again.outcome.kind == "ok":
                self._note_turn(parent, child.path[-1], tool, Failed(arguments, ""), "empty", "ok")
        for tool in self.tools:
            if tool not in reached and self.rng.random() < 0.5:
                self._try(child, tool)
        about = {**shared_values(child.path[-1].arguments), **dict.fromkeys(list(child.made)[:8])}
        enabler = child.path[-1].tool
        weights = [1.0 / (1 + 3 * self.looked.get((enabler, tool), 0)) for tool in self.tools]
        for tool in dict.fromkeys(self.rng.choices(self.tools, weights, k=_LOOKS)):
            self.looked[enabler, tool] = self.looked.get((enabler, tool), 0) + 1
            self._try(child, tool, about)

    # People -----------------------------------------------------------------------------------------------------------

    def _ask_around(self) -> None:
        """Ask those who can be named what they know: a few values of each place, and more where they answer."""
        for number, place in enumerate(self.bank.places):
            if place.origin != "result":
                continue
            asked = self.asked.get(number, 0)
            if asked < 0 or asked > 60:
                continue
            for key in list(self.bank.values[number])[:12]:
                if key in self.known or not names_something(key):
                    continue
                self.known[key] = None
                if not self._meet(key):
                    asked = -1 if self.asked.get(number, 0) == 0 and asked > 2 else asked
                else:
                    self.asked[number] = self.asked.get(number, 0) + 1
                asked = asked + 1 if asked >= 0 else asked
                if asked < 0:
                    break
            self.asked[number] = asked if asked < 0 else max(self.asked.get(number, 0), 0)

    def _meet(self, named: Key | None) -> bool:
        known = self.lab.known("me" if named is None else str(named[1]))
        if known:
            self.bank.know("me" if named is None else "entity", named, known)
            for value in _flat(known):
                self.world.knowledge[key_of(value)] = None
        return bool(known)


def told_in(message: str) -> list[Any]:
    """The names and numbers in a message: what stands in quotes, what has a digit in it, paths. At most twelve."""
    found: list[Any] = []
    for groups in _TOLD_WORD.findall(message[:1000]):
        text = next(group for group in groups if group)
        found.append(text)
        if text.isdecimal() and len(text) < 16:
            found.append(int(text))
    return found[:12]


def _add(local: dict[int, list[Key]], new: list[tuple[int, Key]]) -> None:
    for place, key in new:
        kept = local.setdefault(place, [])
        if key in kept:
            kept.remove(key)
        kept.append(key)
        del kept[:-12]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [one for inner in value.values() for one in _flat(inner)]
    if isinstance(value, list):
        return [one for inner in value for one in _flat(inner)]
    return [] if value is None else [value]
