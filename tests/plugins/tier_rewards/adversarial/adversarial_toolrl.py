"""Adversarial completions in ToolRL's form. ``tier`` and its like read it strictly, ``toolrl`` call by call (ours)."""

from __future__ import annotations

from adversarial_completions import Row, row

GOLD = '{"name": "Lookup", "parameters": {"code": 255}}'
NOTHING = "<think>so</think>\n<response>No.</response>"


def toolrl(name: str, text: str, totals: str, why: str, task: str = "number") -> Row:
    return row("toolrl", name, task, text, totals, why)


def lines(name: str, *calls: str, totals: str, why: str, task: str = "number") -> Row:
    body = "\n".join(calls)
    return toolrl(name, f"<think>so</think>\n<tool_call>\n{body}\n</tool_call>", totals, why, task)


def call(tool: str, parameters: str) -> str:
    return f'{{"name": "{tool}", "parameters": {parameters}}}'


LENIENT = "tier: a line is one call (figure 4); 3.3: "

ROWS = [
    lines("gold", GOLD, totals="1 1 1 1 1 4 4", why="figure 4; 3.3: R = S"),
    toolrl("a response where calls are due", NOTHING, ".5 .1 .5 .5 1/6 -3 -3", "2.2: vacuously; 3.3: no <tool_call>"),
    toolrl("a response where nothing is due", NOTHING, "1 1 1 1 1 4 4", "3.3: 0/0 is 1 (ours)", "nothing"),
    toolrl("nothing at all where nothing is due", "", "0 0 0 0 0 3 3", "3.3: no fields; 0/0 is 1 (ours)", "nothing"),
    toolrl("a word where nothing is due", "zzz", "0 0 0 0 0 3 3", "3.3: no fields; 0/0 is 1 (ours)", "nothing"),
    toolrl(
        "a bare thought where nothing is due",
        "<think>so</think>",
        "0 0 0 0 0 3 3",
        "3.3: no <response>; 0/0 is 1 (ours)",
        "nothing",
    ),
    lines(
        "a call where nothing is due",
        GOLD,
        totals=".5 .5 .5 .5 1/6 -3 -3",
        task="nothing",
        why="2.2: all but the answer; 3.3: no <response>; with only G empty r_name is 0 (ours)",
    ),
    lines(
        "a broken line where nothing is due",
        "{",
        totals="0 0 0 0 0 -3 -3",
        task="nothing",
        why="ours: a line that cannot be read is a call that agrees with nothing",
    ),
    toolrl("nothing at all where calls are due", "", "0 0 0 0 0 -3 -3", "3.3: nothing matches"),
    lines(
        "200 malformed lines", *["{"] * 200, totals="0 0 0 0 0 -2 -2", why="3.3: the fields are there, nothing matches"
    ),
    lines(
        "200 malformed lines and the right one",
        *["{"] * 200,
        GOLD,
        totals="0 0 0 0 0 4 1.6",
        why="3.3: S has no term in |P|; ours: neighbouring malformed lines are one call; guarded: 3 of 1 + 2 * 2",
    ),
    lines(
        "the right call four times",
        *[GOLD] * 4,
        totals=".5 .5 .5 .5 1/6 4 0",
        why="this form returns all: four outputs, one is expected; 3.3: no term in |P|; guarded: 3 of 1 + 2 * 4",
    ),
    lines(
        "one other tool too many",
        GOLD,
        call("Locate", "{}"),
        totals=".5 .5 .5 .5 1/6 3 1",
        why="this form returns all; 3.3: names 1/2, so 2.5 of 3; guarded: 2.5 of 1 + 2 * 2",
    ),
    lines(
        "the right parameters of another tool",
        call("Search", '{"code": 255}'),
        totals=".35 .35 .35 .35 1/6 2 2",
        why="2.2: one missing, one unexpected; 3.3: r_param + r_value without the name, 2 of 3",
    ),
    lines(
        "an unknown tool",
        call("lookup", '{"code": 255}'),
        totals=".1 .1 .1 .275 1/6 2 2",
        why="2.2: R_parse is 0; released: only R_name, its parameter is unexpected; 3.3: 2 of 3",
    ),
    lines(
        "true for an integer",
        call("Lookup", '{"code": true}'),
        totals=".375 .375 .375 .4 1/6 2 2",
        why="2.2: one type mismatch; released: a bool is an int of Python; 3.3: True is not 255",
    ),
    lines(
        "255.0",
        call("Lookup", '{"code": 255.0}'),
        totals="1 1 1 .975 1 4 4",
        why="JSON Schema: 255.0 is an integer; released: a type error; 3.3: 1 is 1.0 (ours)",
    ),
    lines(
        "one parameter too many",
        call("Lookup", '{"code": 255, "x": 1}'),
        totals=".375 .375 .375 .375 1/6 3 3",
        why="2.2: one unexpected; 3.3: 1 + 1/2 + 1 of 3",
    ),
    lines(
        "parallel calls swapped",
        call("Lookup", '{"code": 2}'),
        call("Lookup", '{"code": 1}'),
        task="parallel",
        totals="1 1 1 .5 1 4 4",
        why="2.2: regardless of the order; released: the text of {id: result}; 3.3: sets",
    ),
    lines(
        "one of two parallel calls",
        call("Lookup", '{"code": 2}'),
        task="parallel",
        totals=".5 .5 .5 .5 1/6 1.6 1.6",
        why="2.2: one output, two are expected; 3.3: 1 + 2 of 5",
    ),
    lines(
        "arguments for parameters",
        '{"name": "Lookup", "arguments": {"code": 255}}',
        totals="0 0 0 0 0 -2 -2",
        why=LENIENT + "no call with parameters, so nothing matches",
    ),
    lines(
        "parameters are a list",
        call("Lookup", "[255]"),
        totals=".1 .1 .1 .1 1/6 -2 -2",
        why="ours: the tree is kept, format only; 3.3: no call with parameters, so nothing matches",
    ),
    lines(
        "NaN",
        call("Lookup", '{"code": NaN}'),
        totals="0 0 0 0 0 -2 -2",
        why="RFC 8259, 6: NaN is not permitted; 3.3: a line that cannot be read",
    ),
    lines(
        "1e400",
        call("Lookup", '{"code": 1e400}'),
        totals="0 0 0 0 0 -2 -2",
        why="ours: a number beyond the range of floats is infinite; 3.3: a line that cannot be read",
    ),
    lines(
        "5,000 digits",
        call("Lookup", f'{{"code": {"9" * 5000}}}'),
        totals="0 0 0 0 0 -2 -2",
        why="ours: at most 4,300 digits; 3.3: a line that cannot be read",
    ),
    lines(
        "over several lines",
        GOLD.replace(", ", ",\n"),
        totals="0 0 0 0 0 4 4",
        why=LENIENT + "a call that is spread over several lines is read (ours)",
    ),
    lines("blank lines", "", GOLD, "", totals="1 1 1 1 1 4 4", why="ours: they are passed over"),
    toolrl(
        "text before",
        f"Sure! <think>so</think>\n<tool_call>\n{GOLD}\n</tool_call>",
        "0 0 0 0 0 3 3",
        "figure 4: nothing stands outside of the blocks; 3.3: format 0, the calls count",
    ),
    toolrl(
        "text after",
        f"<think>so</think>\n<tool_call>\n{GOLD}\n</tool_call> Done.",
        "0 0 0 0 0 3 3",
        "figure 4: nothing stands outside of the blocks; 3.3: format 0, the calls count",
    ),
    toolrl(
        "the block twice",
        "<think>so</think>" + f"\n<tool_call>\n{GOLD}\n</tool_call>" * 2,
        "0 0 0 0 0 3 .6",
        "figure 4: one block; 3.3: the format is lost, the calls of both count (ours); guarded: 3 of 1 + 2 * 2",
    ),
    toolrl(
        "a thought never closed",
        f"<think>so\n<tool_call>\n{GOLD}\n</tool_call>",
        "0 0 0 0 0 -3 -3",
        "ours: the thought holds everything after it, so nothing is called",
    ),
    toolrl(
        "the thought mentions the tag",
        f"<think>a <tool_call> it is</think>\n<tool_call>\n{GOLD}\n</tool_call>",
        "1 1 1 1 1 4 4",
        "ours: a thought may mention every tag",
    ),
    toolrl(
        "no thought",
        f"<tool_call>\n{GOLD}\n</tool_call>",
        "0 0 0 0 0 3 3",
        "figure 4: <think> comes first; 3.3: format 0, the calls count",
    ),
]
