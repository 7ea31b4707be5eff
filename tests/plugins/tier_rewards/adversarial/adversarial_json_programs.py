"""Adversarial completions in json: arguments, types, references, superfluous and missing calls."""

from __future__ import annotations

import json
from typing import Any

from adversarial_completions import Row, block, row


def number(name: str, call: str, totals: str, why: str) -> Row:
    """One call for the task ``number``, of which the gold is ``"Lookup": {"code": 255}``."""
    return row("json", name, "number", block(f'{{"0": {{{call}}}}}'), totals, why)


def calls(name: str, task: str, tree: dict[str, Any], totals: str, why: str, returns: str = "one") -> Row:
    return row("json", name, task, block(json.dumps(tree), f' return="{returns}"'), totals, why)


def chain(place: Any = "API_RESPONSE_0", rows: Any = "API_RESPONSE_1") -> dict[str, Any]:
    """The gold of the task ``chain`` with other references."""
    return {"0": {"Locate": {}}, "1": {"Find": {"place": place}}, "2": {"Filter": {"rows": rows, "least": 4.5}}}


def order(**arguments: Any) -> dict[str, Any]:
    return {"0": {"Order": {"buyer": {"name": "Ada", "city": "Rome"}, "items": [{"sku": "s1", "qty": 2}], **arguments}}}


UNREADABLE = "C, rule 8; ours: the tree is kept, and nothing that a schema could confirm: format only; 3.3: no calls"
MISTYPED = "2.2: one type mismatch, 1 - .25, and the call fails; 3.3: the value differs, 6 * 2/3 - 3 + 1"
DANGLING = (
    "2.2: execution fails and nothing else; tier-strict gates on it; 3.3: one of seven points is lost, 6 * 6/7 - 2"
)
UNRESOLVED = "2.2: execution fails and nothing else; it names an earlier call; 3.3: one of seven points is lost"

ROWS = [
    # Arguments --------------------------------------------------------------------------------------------------------
    number("arguments are a list", '"Lookup": [255]', ".1 .1 .1 .1 1/6 -3 -3", UNREADABLE),
    number("arguments are null", '"Lookup": null', ".1 .1 .1 .1 1/6 -3 -3", UNREADABLE),
    number("arguments are text", '"Lookup": "code=255"', ".1 .1 .1 .1 1/6 -3 -3", UNREADABLE),
    number("arguments are a number", '"Lookup": 255', ".1 .1 .1 .1 1/6 -3 -3", UNREADABLE),
    number("an argument twice", '"Lookup": {"code": 1, "code": 255}', ".1 .1 .1 .1 1/6 -3 -3", UNREADABLE),
    row(
        "json",
        "a member of an argument twice",
        "order",
        block('{"0": {"Order": {"buyer": {"name": "Ada", "name": "Ada", "city": "Rome"}}}}'),
        ".1 .1 .1 .1 1/6 -3 -3",
        UNREADABLE,
    ),
    number(
        "no argument",
        '"Lookup": {}',
        ".375 .375 .375 .375 1/6 0 0",
        "2.2: one missing; 3.3: the name alone, 6/3 - 3 + 1",
    ),
    number(
        "one too many",
        '"Lookup": {"code": 255, "x": 1}',
        ".375 .375 .375 .375 1/6 3 3",
        "2.2: one unexpected; 3.3: 1 + 1/2 + 1 of 3",
    ),
    number(
        "five too many",
        '"Lookup": {"code": 255, "a": 1, "b": 1, "c": 1, "d": 1, "e": 1}',
        ".3 .3 .3 .3 1/6 7/3 7/3",
        "2.2: clip(1 - 5/4, 0, 1) = 0; 3.3: 1 + 1/6 + 1 of 3",
    ),
    number(
        "a parameter in capitals",
        '"Lookup": {"Code": 255}',
        ".35 .35 .35 .35 1/6 0 0",
        "2.2: one missing and one unexpected; 3.3: the name alone",
    ),
    number(
        "a parameter in Cyrillic",
        '"Lookup": {"соde": 255}',
        ".35 .35 .35 .35 1/6 0 0",
        "2.2: one missing and one unexpected; 3.3: the name alone",
    ),
    calls(
        "a nested one is missing",
        "order",
        order(buyer={"name": "Ada"}),
        ".375 .375 .375 .4 1/6 2.5 2.5",
        "C, rule 3: all required; ours: nested too, which the released code never misses; 3.3: 1 + 1 + 1 of 4",
    ),
    calls(
        "one is missing in a list",
        "order",
        order(items=[{"sku": "s1"}]),
        ".375 .375 .375 .4 1/6 2.5 2.5",
        "C, rule 3; ours: nested too, which the released code never misses; 3.3: 1 + 1 + 1 of 4",
    ),
    calls(
        "text for an object",
        "order",
        order(buyer="Ada"),
        ".375 .375 .375 .375 1/6 2.5 2.5",
        "ours: one type mismatch, what was to stand in it is not missed too; released: one unexpected; 3.3: 3 of 4",
    ),
    number(
        "an empty tool name",
        '"": {"code": 255}',
        "0 0 0 0 0 -3 -3",
        "C, rule 7: an API name; ours: the same damage is worth the same in each form",
    ),
    # Names ------------------------------------------------------------------------------------------------------------
    number(
        "a tool in Cyrillic",
        '"Lооkup": {"code": 255}',
        ".1 .1 .1 .275 1/6 2 2",
        "2.2: one unknown name makes R_parse 0; released: only R_name, its parameter is unexpected; 3.3: 2 of 3",
    ),
    number("a tool in lower case", '"lookup": {"code": 255}', ".1 .1 .1 .275 1/6 2 2", "2.2: as a tool in Cyrillic"),
    number("a tool with a space", '"Lookup ": {"code": 255}', ".1 .1 .1 .275 1/6 2 2", "2.2: as a tool in Cyrillic"),
    number("a tool of Python", '"__import__": {"code": 255}', ".1 .1 .1 .275 1/6 2 2", "2.2: as a tool in Cyrillic"),
    # Types ------------------------------------------------------------------------------------------------------------
    number(
        "true for an integer",
        '"Lookup": {"code": true}',
        ".375 .375 .375 .4 1/6 2 2",
        MISTYPED + "; released: a bool is an int of Python",
    ),
    number("null for an integer", '"Lookup": {"code": null}', ".375 .375 .375 .375 1/6 2 2", MISTYPED),
    number("text for an integer", '"Lookup": {"code": "255"}', ".375 .375 .375 .375 1/6 2 2", MISTYPED),
    number("a fraction for an integer", '"Lookup": {"code": 255.5}', ".375 .375 .375 .375 1/6 2 2", MISTYPED),
    number(
        "an object for an integer",
        '"Lookup": {"code": {"value": 255}}',
        ".375 .375 .375 .35 1/6 2 2",
        MISTYPED + "; released: one missing and one unexpected",
    ),
    number(
        "a list for an integer",
        '"Lookup": {"code": [255]}',
        ".375 .375 .375 .4 1/6 2 2",
        MISTYPED + "; released: its check looks inside the list",
    ),
    number(
        "255.0",
        '"Lookup": {"code": 255.0}',
        "1 1 1 .975 1 4 4",
        "JSON Schema: 255.0 is an integer; released: a type error; 3.3: 1 is 1.0 (ours)",
    ),
    number(
        "2.55e2",
        '"Lookup": {"code": 2.55e2}',
        "1 1 1 .975 1 4 4",
        "JSON Schema: 2.55e2 is an integer; released: a type error; 3.3: 1 is 1.0 (ours)",
    ),
    number(
        "an integer of 31 digits",
        f'"Lookup": {{"code": {10**30}}}',
        ".5 .5 .5 .5 1/6 2 2",
        "2.2: it executes and answers something else; 3.3: another value",
    ),
    number("another integer", '"Lookup": {"code": 256}', ".5 .5 .5 .5 1/6 2 2", "2.2: all but the answer; 3.3: 2 of 3"),
    calls(
        "null is the answer",
        "null",
        {"0": {"Forget": {"name": "Ada"}}},
        "1 1 1 1 1 4 4",
        "2.2: null is a value like any other",
    ),
    calls(
        "a call that failed where null is the answer",
        "null",
        {"0": {"Forget": {"name": 5}}},
        ".375 .375 .375 .375 1/6 2 2",
        "2.2: one type mismatch; a call that failed has no output, and so not the right one; 3.3: 2 of 3",
    ),
    calls(
        "a table wrapped in a list",
        "chain",
        chain(rows=["API_RESPONSE_1"]),
        ".375 .375 .375 .4 1/6 22/7 22/7",
        "ours: one type mismatch a place, and what stands inside of a value of another type is not looked at; "
        "released: no reference is checked; 3.3: 6 of 7",
    ),
    # Text -------------------------------------------------------------------------------------------------------------
    calls(
        "& and < as they are",
        "words",
        {"0": {"Echo": {"text": "R&D <b>"}}},
        "1 1 1 1 1 4 4",
        "RFC 8259: plain text; our tier-released does not copy the released parser's defects",
    ),
    calls(
        "NUL in a text",
        "words",
        {"0": {"Echo": {"text": "R&D\0<b>"}}},
        ".5 .5 .5 .5 1/6 2 2",
        "RFC 8259, 7: \\u0000 is a character; another text",
    ),
    calls(
        "an opening tag in a text",
        "words",
        {"0": {"Echo": {"text": "<tool_call>"}}},
        ".5 .5 .5 .5 1/6 2 2",
        "ours: a mention of the tag begins no block; another text",
    ),
    row(
        "json",
        "a closing tag, escaped",
        "words",
        block('{"0": {"Echo": {"text": "\\u003c/tool_call>"}}}'),
        ".5 .5 .5 .5 1/6 2 2",
        "RFC 8259, 7: an escape is the character; another text",
    ),
    # References -------------------------------------------------------------------------------------------------------
    calls(
        "dotted references",
        "chain",
        chain("API_RESPONSE_0.place", "API_RESPONSE_1.rows"),
        "1 1 1 1 1 16/7 16/7",
        "ours: the spelt-out result field; 3.3 compares texts: two of seven points are lost, 6 * 5/7 - 2",
    ),
    calls("its own result", "chain", chain("API_RESPONSE_1"), ".4 .4 0 .4 1/6 22/7 22/7", DANGLING),
    calls("a later result", "chain", chain("API_RESPONSE_2"), ".4 .4 0 .4 1/6 22/7 22/7", DANGLING),
    calls("the result of no call", "chain", chain(rows="API_RESPONSE_7"), ".4 .4 0 .4 1/6 22/7 22/7", DANGLING),
    calls(
        "an id of ten digits in a reference",
        "chain",
        chain(rows="API_RESPONSE_1000000000"),
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING + "; ours: meant as a reference, and names no call",
    ),
    calls(
        "a path that is none",
        "chain",
        chain(rows="API_RESPONSE_1..n"),
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING + "; ours: meant as a reference, and names no call",
    ),
    calls(
        "a word for an id in a reference",
        "chain",
        chain(rows="API_RESPONSE_one"),
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING + "; ours: meant as a reference, and names no call",
    ),
    calls(
        "other ids, and references to the usual ones",
        "chain",
        {
            "10": {"Locate": {}},
            "11": {"Find": {"place": "API_RESPONSE_0"}},
            "12": {"Filter": {"rows": "API_RESPONSE_1", "least": 4.5}},
        },
        ".4 .4 0 .4 1/6 16/7 16/7",
        "2.2: execution fails and nothing else; 3.3: two references that refer to nothing agree with nothing: 5 of 7",
    ),
    calls(
        "an empty id in a reference",
        "chain",
        chain(rows="API_RESPONSE_"),
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING + "; ours: meant as a reference, and names no call",
    ),
    calls(
        "a reference with a space",
        "chain",
        chain(rows="API_RESPONSE_1 "),
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING + "; ours: meant as a reference, and names no call",
    ),
    calls(
        "a reference in lower case",
        "chain",
        chain(rows="api_response_1"),
        ".375 .375 .375 .375 1/6 22/7 22/7",
        "C, rule 10: it is text, of another type than a table; 3.3: one of seven points is lost",
    ),
    calls(
        "a field that does not exist",
        "chain",
        chain(rows="API_RESPONSE_1.nowhere"),
        ".4 .4 .4 .4 1/6 22/7 22/7",
        UNRESOLVED,
    ),
    calls("an index of an object", "chain", chain(rows="API_RESPONSE_1[0]"), ".4 .4 .4 .4 1/6 22/7 22/7", UNRESOLVED),
    calls(
        "a path of 400 parts",
        "chain",
        chain(rows="API_RESPONSE_1" + ".a" * 400),
        ".4 .4 .4 .4 1/6 22/7 22/7",
        UNRESOLVED,
    ),
    calls(
        "a result of another type",
        "chain",
        chain(rows="API_RESPONSE_0"),
        ".375 .375 .375 .4 1/6 22/7 22/7",
        "ours: a reference has the type that its result states; released: no reference is checked; 3.3: 6 of 7",
    ),
    calls(
        "the result of a call that failed",
        "chain",
        chain(place=5),
        ".375 .375 .375 .375 1/6 22/7 22/7",
        "2.2: one type mismatch; a failure at step k invalidates downstream calls; 3.3: 6 of 7",
    ),
    calls(
        "a dangling reference in a parameter too many",
        "chain",
        {**chain(), "0": {"Locate": {"x": "API_RESPONSE_9"}}},
        ".375 .375 0 .375 1/6 22/7 22/7",
        "2.2: one unexpected, and execution fails; tier-strict gates on the reference; 3.3: keys 0 of 1, so 6 of 7",
    ),
    calls(
        "the first call is dropped",
        "chain",
        {"1": {"Find": {"place": "API_RESPONSE_0"}}, "2": {"Filter": {"rows": "API_RESPONSE_1", "least": 4.5}}},
        ".4 .4 0 .4 1/6 8/7 8/7",
        "2.2: execution fails; 3.3: names 2/3, Find 1 (its reference names no call), Filter 2: 11/3 of 7",
    ),
    # Orders and ids ---------------------------------------------------------------------------------------------------
    row(
        "json",
        "members in reverse",
        "chain",
        block(
            '{"2": {"Filter": {"rows": "API_RESPONSE_1", "least": 4.5}}, "1": {"Find": {"place": "API_RESPONSE_0"}}, '
            '"0": {"Locate": {}}}'
        ),
        "1 1 1 1 1 4 4",
        "RFC 8259, 4: an object is unordered; C, rule 5: the ids are the order",
    ),
    calls(
        "gaps between the ids",
        "chain",
        {
            "0": {"Locate": {}},
            "5": {"Find": {"place": "API_RESPONSE_0"}},
            "9": {"Filter": {"rows": "API_RESPONSE_5", "least": 4.5}},
        },
        "1 1 1 .5 1 4 4",
        "ours: gaps; released: the text of {id: result}; 3.3: references by position (ours)",
    ),
    calls(
        "parallel calls swapped",
        "parallel",
        {"0": {"Lookup": {"code": 2}}, "1": {"Lookup": {"code": 1}}},
        "1 1 1 .5 1 4 4",
        "2.2: regardless of the order of independent sub-goals; released: the text of {id: result}",
        "all",
    ),
    calls(
        "parallel calls, one returned",
        "parallel",
        {"0": {"Lookup": {"code": 1}}, "1": {"Lookup": {"code": 2}}},
        ".5 .5 .5 .5 1/6 4 4",
        "C, rule 2: one output, two are expected; 3.3 compares calls alone",
    ),
    calls(
        "a parallel call repeated",
        "parallel",
        {"0": {"Lookup": {"code": 1}}, "1": {"Lookup": {"code": 2}}, "2": {"Lookup": {"code": 2}}},
        ".5 .5 .5 .5 1/6 4 16/7",
        "ours: another multiset; 3.3: S has no term in |P|; guarded: S = 1 + 4 * 3/2, R = 5",
        "all",
    ),
    # Too few and too many ---------------------------------------------------------------------------------------------
    calls(
        "nothing is called",
        "number",
        {},
        ".5 .1 .5 .5 1/6 -3 -3",
        "2.2: the terms hold vacuously; ours: guarded pays the format alone; 3.3: no <tool_call>, no match",
    ),
    calls("nothing is called where nothing is due", "nothing", {}, "1 1 1 1 1 4 4", "C, rule 14; 3.3: 0/0 is 1 (ours)"),
    calls(
        "one safe call",
        "number",
        {"0": {"Locate": {}}},
        ".5 .5 .5 .5 1/6 -2 -2",
        "2.2: all but the answer; 3.3: nothing matches",
    ),
    calls(
        "a safe call where nothing is due",
        "nothing",
        {"0": {"Locate": {}}},
        ".5 .5 .5 .5 1/6 -3 -3",
        "2.2: all but the answer; 3.3: no <response>, and with only G empty r_name is 0 (ours)",
    ),
    calls(
        "30 superfluous calls",
        "number",
        {**{str(at): {"Locate": {}} for at in range(30)}, "30": {"Lookup": {"code": 255}}},
        "1 1 1 .5 1 3 -37/21",
        "2.2: regardless of length; 3.3: names 1/2, so 2.5 of 3; guarded: of 1 + 2 * 31",
    ),
    calls(
        "257 calls",
        "number",
        {str(at): {"Lookup": {"code": 255}} for at in range(257)},
        "0 0 0 0 0 -3 -3",
        "ours: at most 256 calls",
    ),
    calls(
        "the right call twice",
        "number",
        {str(at): {"Lookup": {"code": 255}} for at in range(2)},
        "1 1 1 .5 1 4 1.6",
        "2.2: regardless of length; 3.3: S has no term in |P|; guarded: 3 of 1 + 2 * 2",
    ),
    calls(
        "the right call four times",
        "number",
        {str(at): {"Lookup": {"code": 255}} for at in range(4)},
        "1 1 1 .5 1 4 0",
        "2.2: regardless of length; 3.3: S has no term in |P|; guarded: 3 of 1 + 2 * 4",
    ),
    calls(
        "another tool first",
        "number",
        {"0": {"Locate": {}}, "1": {"Lookup": {"code": 255}}},
        "1 1 1 .5 1 3 1",
        "2.2: regardless of length; 3.3: names 1/2, so 2.5 of 3; guarded: 2.5 of 1 + 2 * 2",
    ),
    calls(
        "another legal path",
        "number",
        {"0": {"Search": {"number": 255}}},
        "1 1 1 1 1 -2 -2",
        "2.2: functionally equivalent APIs; 3.3: neither name nor keys match the reference",
    ),
    calls(
        "a memorised table",
        "chain",
        {"0": {"Filter": {"rows": [{"n": "b", "stars": 5}], "least": 4.5}}},
        ".975 .975 .975 .45 1 0 0",
        "2.2: the answer, with one value of another type; released: two leaves mistyped, another id; 3.3: 1/3 + 2 of 7",
    ),
    calls(
        "a memorised place",
        "chain",
        {"0": {"Find": {"place": "Rome"}}, "1": {"Filter": {"rows": "API_RESPONSE_0", "least": 4.5}}},
        "1 1 1 .5 1 8/7 8/7",
        "2.2: regardless of the path; released: another id; 3.3: 2/3 + 1 + 2 of 7",
    ),
    calls(
        "a program that only guesses",
        "parallel",
        {str(at): {"Lookup": {"code": at}} for at in range(4)},
        ".5 .5 .5 .5 1/6 4 4/3",
        "2.2: four outputs, two are expected; 3.3: S has no term in |P|; guarded: 5 of 1 + 4 * 2",
        "all",
    ),
]
