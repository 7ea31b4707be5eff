"""Adversarial completions in json: what is not JSON, ids, trees, envelopes."""

from __future__ import annotations

from adversarial_completions import Row, block, row

GOLD = '{"0": {"Lookup": {"code": 255}}}'
WRONG = '{"0": {"Lookup": {"code": 256}}}'


def value(name: str, code: str, totals: str, why: str) -> Row:
    """One value for the integer ``code`` of the task ``number``."""
    return row("json", name, "number", block(f'{{"0": {{"Lookup": {{"code": {code}}}}}}}'), totals, why)


def body(name: str, text: str, totals: str, why: str) -> Row:
    return row("json", name, "number", block(text), totals, why)


def text(name: str, completion: str, totals: str, why: str) -> Row:
    return row("json", name, "number", completion, totals, why)


def called(key: str) -> str:
    return f'{{"{key}": {{"Lookup": {{"code": 255}}}}}}'


NOT_JSON = "2.2: not parsable, so format is 0 and closes everything; no calls for 3.3: -3. "
TREE = "2.2: the AST is not well formed, so 0; no calls for 3.3: -3. "

ROWS = [
    body("gold", GOLD, "1 1 1 1 1 4 4", "2.2: everything is right; 3.3: R = S"),
    # Values that are not JSON ---------------------------------------------------------------------------------------
    value("NaN", "NaN", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 6: NaN is not permitted"),
    value("Infinity", "Infinity", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 6"),
    value("minus Infinity", "-Infinity", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 6"),
    value("1e400", "1e400", "0 0 0 0 0 -3 -3", NOT_JSON + "ours: a number beyond the range of floats is infinite"),
    value("5,000 digits", "9" * 5000, "0 0 0 0 0 -3 -3", NOT_JSON + "ours: at most 4,300 digits"),
    value("hexadecimal", "0xFF", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 6"),
    value("leading zero", "0255", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 6: leading zeros are not allowed"),
    value("leading plus", "+255", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 6"),
    value("leading point", ".255e3", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 6"),
    value("underscore", "2_55", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 6"),
    value("Python's True", "True", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 3: literal names are lower case"),
    value("single quotes", "'255'", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 7"),
    value("arithmetic", "250 + 5", "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259"),
    value("a call for a value", '__import__("os").getpid()', "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259; never evaluated"),
    value(
        "half of a surrogate pair", '"\\ud800"', "0 0 0 0 0 -3 -3", NOT_JSON + "ours: half of a character is no text"
    ),
    value("a line break in a string", '"2\n55"', "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 7: control characters"),
    value("brackets 100 deep", "[" * 100 + "]" * 100, "0 0 0 0 0 -3 -3", NOT_JSON + "ours: at most 64 in one another"),
    body("line comment", '{"0": {"Lookup": {"code": 255}}} // done', "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 2"),
    body("block comment", '{"0": {"Lookup": {/* one */ "code": 255}}}', "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 2"),
    body("trailing comma", '{"0": {"Lookup": {"code": 255,}}}', "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 4"),
    body("code fence", f"```json\n{GOLD}\n```", "0 0 0 0 0 -3 -3", NOT_JSON + "C: respond strictly in the format"),
    body("byte order mark", "\ufeff" + GOLD, "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 8.1: none may be added"),
    body("two objects", GOLD + GOLD, "0 0 0 0 0 -3 -3", NOT_JSON + "RFC 8259, 2: one value"),
    body("empty body", "", "0 0 0 0 0 -3 -3", NOT_JSON + "C, rule 14: no call is {}"),
    body("white space", " \n\t ", "0 0 0 0 0 -3 -3", NOT_JSON + "C, rule 14: no call is {}"),
    body(
        "a closing tag in a string",
        '{"0": {"Lookup": {"code": "</tool_call>"}}}',
        "0 0 0 0 0 -3 -3",
        NOT_JSON + "ours: the body ends at the first </tool_call>",
    ),
    # Trees ------------------------------------------------------------------------------------------------------------
    body("list", "[]", "0 0 0 0 0 -3 -3", TREE + "C, rule 6: a dictionary"),
    body("list of calls", '[{"Lookup": {"code": 255}}]', "0 0 0 0 0 -3 -3", TREE + "C, rule 6"),
    body("null", "null", "0 0 0 0 0 -3 -3", TREE + "C, rule 6"),
    body("text", '"Lookup"', "0 0 0 0 0 -3 -3", TREE + "C, rule 6"),
    body("call is a list", '{"0": ["Lookup", {"code": 255}]}', "0 0 0 0 0 -3 -3", TREE + "C, rule 6"),
    body("call is text", '{"0": "Lookup(code=255)"}', "0 0 0 0 0 -3 -3", TREE + "C, rule 6"),
    body("call is null", '{"0": null}', "0 0 0 0 0 -3 -3", TREE + "C, rule 6"),
    body("empty call", '{"0": {}}', "0 0 0 0 0 -3 -3", TREE + "C, rule 7: exactly one API name"),
    body(
        "two tools in one call",
        '{"0": {"Lookup": {"code": 255}, "Locate": {}}}',
        "0 0 0 0 0 -3 -3",
        TREE + "C, rule 7: exactly one API name",
    ),
    body(
        "one tool twice in one call",
        '{"0": {"Lookup": {"code": 1}, "Lookup": {"code": 255}}}',
        "0 0 0 0 0 -3 -3",
        TREE + "C, rule 7: exactly one API name",
    ),
    body(
        "one id twice",
        '{"0": {"Lookup": {"code": 1}}, "0": {"Lookup": {"code": 255}}}',
        "0 0 0 0 0 -3 -3",
        TREE + "C, rule 4: unique keys",
    ),
    body(
        "one number twice",
        '{"0": {"Lookup": {"code": 1}}, "00": {"Lookup": {"code": 255}}}',
        "0 0 0 0 0 -3 -3",
        TREE + "C, rule 4: unique numbers",
    ),
    # Ids --------------------------------------------------------------------------------------------------------------
    body("id 2.0", called("2.0"), "0 0 0 0 0 -3 -3", TREE + "C, rules 4 and 5: a numeric string, an integer"),
    body("id superscript", called("²"), "0 0 0 0 0 -3 -3", TREE + "C, rule 4; ours: ASCII digits"),
    body("id in other digits", called("٣"), "0 0 0 0 0 -3 -3", TREE + "C, rule 4; ours: ASCII digits"),
    body("id with a space", called(" 2"), "0 0 0 0 0 -3 -3", TREE + "C, rule 4"),
    body("negative id", called("-1"), "0 0 0 0 0 -3 -3", TREE + "C, rule 4"),
    body("id is a letter", called("a"), "0 0 0 0 0 -3 -3", TREE + "C, rule 4"),
    body("empty id", called(""), "0 0 0 0 0 -3 -3", TREE + "C, rule 4"),
    body("id of ten digits", called("1234567890"), "0 0 0 0 0 -3 -3", TREE + "ours: at most nine digits"),
    body(
        "id of nine digits",
        called("999999999"),
        "1 1 1 .5 1 4 4",
        "ours: ids may start anywhere; the released code compares the text of {id: result}",
    ),
    body(
        "ids from 7",
        called("7"),
        "1 1 1 .5 1 4 4",
        "ours: ids may start anywhere; the released code compares the text of {id: result}",
    ),
    body(
        "id 00",
        called("00"),
        "1 1 1 1 1 4 4",
        "C, rule 4: a numeric string; its number is 0, and so is the expected id",
    ),
    body(
        "escapes spell the call",
        '{"\\u0030": {"Look\\u0075p": {"\\u0063ode": 255}}}',
        "1 1 1 1 1 4 4",
        "RFC 8259, 7: an escape is the character",
    ),
    # Envelopes --------------------------------------------------------------------------------------------------------
    text("nothing at all", "", "0 0 0 0 0 -3 -3", "C: <think>, then <tool_call>"),
    text("no thought", f'<tool_call return="one">{GOLD}</tool_call>', "0 0 0 0 0 -3 -3", "C: <think> comes first"),
    text(
        "thought never closed",
        f'<think>so <tool_call return="one">{GOLD}</tool_call>',
        "0 0 0 0 0 -3 -3",
        "C: <think> … </think>",
    ),
    text(
        "block never closed",
        f'<think>so</think><tool_call return="one">{GOLD}',
        "0 0 0 0 0 -3 -3",
        "C: <tool_call> … </tool_call>",
    ),
    text(
        "cut inside of a string",
        '<think>so</think><tool_call return="one">{"0": {"Loo',
        "0 0 0 0 0 -3 -3",
        "C: <tool_call> … </tool_call>",
    ),
    text("no return", f"<think>so</think><tool_call>{GOLD}</tool_call>", "0 0 0 0 0 -3 -3", "C, rule 2"),
    text("return is both", block(GOLD, ' return="both"'), "0 0 0 0 0 -3 -3", "C, rule 2: all or one"),
    text("return is ONE", block(GOLD, ' return="ONE"'), "0 0 0 0 0 -3 -3", "C, rule 2: all or one"),
    text("return twice", block(GOLD, ' return="one" return="all"'), "0 0 0 0 0 -3 -3", "XML: an attribute stands once"),
    text("return in single quotes", block(GOLD, " return='one'"), "1 1 1 1 1 4 4", "XML: either quotes"),
    text("another attribute", block(GOLD, ' id="7" return="one"'), "1 1 1 1 1 4 4", "ours: it says nothing"),
    text("tags in capitals", block(GOLD).upper().replace("LOOKUP", "Lookup"), "0 0 0 0 0 -3 -3", "C: lower case"),
    text(
        "other tags", f"<reasoning>so</reasoning><answer>{GOLD}</answer>", "0 0 0 0 0 -3 -3", "C: <think>, <tool_call>"
    ),
    text(
        "text between the blocks",
        f'<think>so</think> then <tool_call return="one">{GOLD}</tool_call>',
        "0 0 0 0 0 -3 -3",
        "C: the block follows the thought",
    ),
    text(
        "text before",
        "Sure! " + block(GOLD),
        "1 1 0 1 1 4 4",
        "ours: prose before is tolerated as released, not by tier-strict",
    ),
    text(
        "text after",
        block(GOLD) + "\nI hope that helps.",
        "1 1 0 1 1 4 4",
        "ours: prose after is tolerated as released, not by tier-strict",
    ),
    text(
        "2,600 characters of garbage after",
        block(GOLD) + " so" * 867,
        "1 1 0 1 1 4 4",
        "ours: what a cut-off costs is the recipe of the run; the text alone is prose after the block",
    ),
    text(
        "an empty block after",
        block(GOLD) + '\n<tool_call return="one">\n{}\n</tool_call>',
        "0 0 0 1 0 4 4",
        "ours: a second complete block closes the gate; the released code reads the first, and so does 3.3",
    ),
    text(
        "a contradicting block after",
        block(GOLD) + f'<tool_call return="one">{WRONG}</tool_call>',
        "0 0 0 1 0 4 4",
        "ours: a second complete block closes the gate; the released code reads the first, and so does 3.3",
    ),
    text(
        "a wrong block, then the right one",
        block(WRONG) + block(GOLD),
        "0 0 0 .5 0 2 2",
        "ours: a second complete block closes the gate; the first calls with another value: 6 * 2/3 - 3 + 1",
    ),
    text("twenty answers", block(GOLD) * 20, "0 0 0 1 0 4 4", "ours: a second complete block closes the gate"),
    text(
        "a block before the thought",
        f'<tool_call return="one">{WRONG}</tool_call>' + block(GOLD),
        "0 0 0 1 0 4 4",
        "ours: a second complete block closes the gate, wherever it stands",
    ),
    text(
        "an open block after",
        block(GOLD) + '<tool_call return="one">{"0": {"Loo',
        "1 1 0 1 1 4 4",
        "ours: a block that is not complete is prose after the block",
    ),
    text(
        "a mention of the tag after",
        block(GOLD) + " That was my <tool_call>.",
        "1 1 0 1 1 4 4",
        "ours: a mention of the tag is prose",
    ),
    text(
        "a whole completion in the thought",
        f'<think><think>a</think><tool_call return="one">{GOLD}</tool_call></think>'
        '<tool_call return="one">{}</tool_call>',
        "0 0 0 1 0 4 4",
        "ours: a completion quoted in the thought is a block; the released code reads it",
    ),
    text(
        "the thought mentions the tag",
        block(GOLD, thought="I answer in a <tool_call> block."),
        "1 1 1 1 1 4 4",
        "ours: a thought may mention every tag",
    ),
    text(
        "the thought mentions its end",
        block(GOLD, thought="then </think> and so on"),
        "1 1 1 1 1 4 4",
        "ours: the thought ends where a tool-call tag follows",
    ),
    text("NUL in the thought", block(GOLD, thought="a\0b"), "1 1 1 1 1 4 4", "ours: a thought is any text"),
    text("& and < in the thought", block(GOLD, thought="a & b < c"), "1 1 1 1 1 4 4", "ours: a thought is any text"),
    text("400,001 characters", block(GOLD, thought="x" * 400_000), "0 0 0 0 0 -3 -3", "ours: at most 400,000"),
]
