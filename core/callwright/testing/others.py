"""Checks of the kinds of which little can be said without running them: toolsets and model checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from callwright.testing.expectations import expect, expect_members, expect_name, never_raises
from callwright.testing.pickling import elsewhere
from callwright.tools.spec import FunctionTool
from callwright.tools.validation import check_arguments
from callwright.training.model_check import ModelCheck


def check_toolset(toolset: Sequence[FunctionTool]) -> None:
    """It is a sequence of tools with different names and schemas that compile."""
    expect(isinstance(toolset, Sequence), f"a toolset is a sequence of tools, not {type(toolset).__name__}")
    seen: set[str] = set()
    for tool in toolset:
        expect(isinstance(tool, FunctionTool), f"{tool!r} is not a tool; decorate it with @callwright.tool")
        expect(tool.spec.name not in seen, f"two tools are named {tool.spec.name!r}")
        seen.add(tool.spec.name)
        with never_raises(f"compiling the schema of tool {tool.spec.name!r}"):
            check_arguments(tool.spec, {})


def check_pickles_before_use(toolset: Sequence[FunctionTool]) -> None:
    """Its tools can be pickled as they were made, and are the same tools in another process."""
    for tool in toolset:
        copy = elsewhere(tool, f"the tool {tool.spec.name!r}")
        expect(copy.spec == tool.spec and copy.state == tool.state, f"tool {tool.spec.name!r} is another one elsewhere")


def check_pickles_after_use(toolset: Sequence[FunctionTool]) -> None:
    """Its tools and their specifications can be pickled after arguments were checked."""
    for tool in toolset:
        check_arguments(tool.spec, {})
        copy = elsewhere(tool.spec, f"the specification of tool {tool.spec.name!r}, after it was used,")
        expect(copy == tool.spec, f"the specification of tool {tool.spec.name!r} is another one elsewhere")
        expect(
            [str(problem) for problem in check_arguments(copy, {})]
            == [str(problem) for problem in check_arguments(tool.spec, {})],
            f"the arguments of tool {tool.spec.name!r} are checked in another way elsewhere",
        )
    check_pickles_before_use(toolset)


def check_model_check(check: ModelCheck) -> None:
    """It has the members of :class:`callwright.training.ModelCheck` and a name."""
    expect_members(check, ModelCheck)
    expect_name(check)


TOOLSET_CHECKS: Final = (check_toolset, check_pickles_before_use, check_pickles_after_use)
MODEL_CHECK_CHECKS: Final = (check_model_check,)
