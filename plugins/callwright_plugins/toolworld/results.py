"""What programs of this package's own come to, without a session: their tools are called as the functions they are.

Making one task asks this of some twenty shortcuts. They differ from the task's program in one call, and this world
never changes, so that a call with the same arguments as there has the same result, and is not made again.
"""

from __future__ import annotations

from typing import Any

from callwright.language.program import Program
from callwright.tools.spec import ToolError
from callwright_plugins.toolworld.tools import FUNCTIONS, Context


class Results:
    """What the calls of a program return in a context, and what other programs do that differ from it in a few calls.

    References of these programs are whole arguments, bare, and lead to earlier calls.
    """

    def __init__(self, program: Program, context: Context) -> None:
        self._context = context
        self._calls = {call.id: call for call in program.calls}
        #: By call: what it returns, and what a reference to it stands for.
        self._known: dict[int, tuple[Any, Any]] = {}
        #: What each call of the program returns, in order; ``None`` if one fails.
        self.values = self._run(program, self._known)

    def handed(self, program: Program) -> tuple[Any, ...] | None:
        """What another program hands to the user; ``None`` if one of its calls fails."""
        values = self._run(program, {})
        return values if values is None or program.returns == "all" else values[-1:]

    def _run(self, program: Program, results: dict[int, tuple[Any, Any]]) -> tuple[Any, ...] | None:
        """All values. Those of calls that have to be made are put into ``results``, by call."""
        known, calls = self._known, self._calls
        values = []
        for call in program.calls:
            number, located = call.id, call.located
            if number in known and calls[number] is call:
                for _, reference in located:
                    if reference.call in results:
                        break
                else:
                    values.append(known[number][0])
                    continue
            tool = FUNCTIONS[call.tool]
            arguments = dict(call.arguments)
            for path, reference in located:
                source = reference.call
                arguments[path[0]] = (results[source] if source in results else known[source])[1]  # type: ignore[index]
            try:
                value = tool.function(self._context, **arguments)
            except ToolError:
                return None
            field = tool.spec.result_field
            results[number] = value, value if field is None else value[field]
            values.append(value)
        return tuple(values)
