"""Adversarial completions in the direct form, which looks like Python and is never evaluated."""

from __future__ import annotations

from adversarial_completions import Row, block, row


def direct(name: str, body: str, totals: str, why: str, task: str = "number", returns: str = "") -> Row:
    return row("direct", name, task, block(body, returns), totals, why)


def value(name: str, text: str, totals: str, why: str) -> Row:
    """One value for the integer ``code`` of the task ``number``."""
    return direct(name, f"[Lookup(code={text})]", totals, why)


MALFORMED = "2.2: not parsable, so 0; no calls for 3.3: -3. "
MISTYPED = "2.2: one type mismatch, 1 - .25, and the call fails; 3.3: the value differs, 6 * 2/3 - 3 + 1"
DANGLING = (
    "2.2: execution fails and nothing else; tier-strict gates on it; 3.3: one of seven points is lost, 6 * 6/7 - 2"
)


def chain(rows: str = "API_RESPONSE_1", place: str = "API_RESPONSE_0") -> str:
    return f"[Locate(), Find(place={place}), Filter(rows={rows}, least=4.5)]"


ROWS = [
    value("gold", "255", "1 1 1 1 1 4 4", "A.3; 3.3: R = S"),
    direct(
        "gold chain", chain(), "1 1 1 1 1 4 4", "A.3 has no return; ours: calls depend on one another, so one", "chain"
    ),
    direct(
        "gold parallel",
        "[Lookup(code=1), Lookup(code=2)]",
        "1 1 1 1 1 4 4",
        "A.3 has no return; ours: no call refers to another, so all",
        "parallel",
    ),
    direct(
        "parallel, one asked for",
        "[Lookup(code=1), Lookup(code=2)]",
        ".5 .5 .5 .5 1/6 4 4",
        "C, rule 2: the attribute counts where it is given",
        "parallel",
        ' return="one"',
    ),
    direct(
        "dependent, all asked for",
        chain(),
        ".5 .5 .5 .5 1/6 4 4",
        "C, rule 2: three outputs, one is expected",
        "chain",
        ' return="all"',
    ),
    direct("quoted calls", '["Lookup(code=255)"]', "1 1 1 1 1 4 4", "ours: the released code's list is read too"),
    direct("a trailing comma", "[Lookup(code=255),]", "1 1 1 1 1 4 4", "ours: as Python's lists"),
    # Values -----------------------------------------------------------------------------------------------------------
    value("255.0", "255.0", "1 1 1 .975 1 4 4", "JSON Schema: 255.0 is an integer; released: a type error; as in json"),
    value(
        "2.55e2", "2.55e2", "1 1 1 .975 1 4 4", "JSON Schema: 2.55e2 is an integer; released: a type error; as in json"
    ),
    value("True for an integer", "True", ".375 .375 .375 .4 1/6 2 2", MISTYPED + "; released: a bool is an int"),
    value("true for an integer", "true", ".375 .375 .375 .4 1/6 2 2", MISTYPED + "; ours: JSON's words are read too"),
    value("None for an integer", "None", ".375 .375 .375 .375 1/6 2 2", MISTYPED),
    value("text for an integer", '"255"', ".375 .375 .375 .375 1/6 2 2", MISTYPED),
    value("hexadecimal", "0xFF", "0 0 0 0 0 -3 -3", MALFORMED + "ours: decimal numbers"),
    value("underscore", "2_55", "0 0 0 0 0 -3 -3", MALFORMED + "ours: decimal numbers"),
    value("1e400", "1e400", "0 0 0 0 0 -3 -3", MALFORMED + "ours: a number beyond the range of floats is infinite"),
    value("nan", "nan", "0 0 0 0 0 -3 -3", MALFORMED + "ours: no such value"),
    value("arithmetic", "250 + 5", "0 0 0 0 0 -3 -3", MALFORMED + "ours: nothing is evaluated"),
    value("a call for a value", "Lookup(code=255)", "0 0 0 0 0 -3 -3", MALFORMED + "A.3: results are API_RESPONSE_n"),
    value(
        "an import for a value",
        "__import__('os').getpid()",
        "0 0 0 0 0 -3 -3",
        MALFORMED + "ours: nothing is evaluated",
    ),
    value("an f-string", "f'{255}'", "0 0 0 0 0 -3 -3", MALFORMED + "ours: nothing is evaluated"),
    value("a conditional", "255 if 1 else 0", "0 0 0 0 0 -3 -3", MALFORMED + "ours: nothing is evaluated"),
    value("a value in brackets", "(255)", "0 0 0 0 0 -3 -3", MALFORMED + "ours: nothing is evaluated"),
    value("a tuple", "(255,)", "0 0 0 0 0 -3 -3", MALFORMED + "ours: values that JSON knows"),
    direct("a comprehension", "[Lookup(code=n) for n in [255]]", "0 0 0 0 0 -3 -3", MALFORMED + "A.3: a list of calls"),
    direct("a comment", "[Lookup(code=255)] # done", "0 0 0 0 0 -3 -3", MALFORMED + "A.3: a list within brackets"),
    # Calls ------------------------------------------------------------------------------------------------------------
    direct("no list", "Lookup(code=255)", "0 0 0 0 0 -3 -3", MALFORMED + "A.3: a list within brackets"),
    direct("a JSON body", '{"0": {"Lookup": {"code": 255}}}', "0 0 0 0 0 -3 -3", MALFORMED + "A.3"),
    direct("a bracket is missing", "[Lookup(code=255]", "0 0 0 0 0 -3 -3", MALFORMED + "A.3"),
    direct("an empty name", "[(code=255)]", "0 0 0 0 0 -3 -3", MALFORMED + "C, rule 7: an API name"),
    direct("no parentheses", "[Lookup]", "0 0 0 0 0 -3 -3", MALFORMED + "A.3"),
    direct("unpacked arguments", "[Lookup(**{'code': 255})]", "0 0 0 0 0 -3 -3", MALFORMED + "A.3: PARAM_NAME=VALUE"),
    direct(
        "a positional argument",
        "[Lookup(255)]",
        ".1 .1 .1 .1 1/6 -3 -3",
        "ours: which parameter it is for only the schema knows: format alone; no calls for 3.3",
    ),
    direct(
        "an argument twice",
        "[Lookup(code=1, code=255)]",
        ".1 .1 .1 .1 1/6 -3 -3",
        "ours: nobody knows which counts, as in json",
    ),
    direct(
        "a tool of Python",
        "[__import__(code=255)]",
        ".1 .1 .1 .275 1/6 2 2",
        "2.2: one unknown name makes R_parse 0; released: only R_name, its parameter is unexpected; 3.3: 2 of 3",
    ),
    direct("a dotted tool", "[os.system(code=255)]", ".1 .1 .1 .275 1/6 2 2", "2.2: as a tool of Python"),
    direct("nothing is called", "[]", ".5 .1 .5 .5 1/6 -3 -3", "2.2: vacuously; 3.3: no <tool_call>, no match"),
    direct(
        "a contradicting block after",
        "[Lookup(code=255)]</tool_call><tool_call>[Lookup(code=1)]",
        "0 0 0 1 0 4 4",
        "ours: a second complete block closes the gate; the released code reads the first",
    ),
    # References -------------------------------------------------------------------------------------------------------
    direct("the result of no call", chain("API_RESPONSE_7"), ".4 .4 0 .4 1/6 22/7 22/7", DANGLING, "chain"),
    direct("its own result", chain(place="API_RESPONSE_1"), ".4 .4 0 .4 1/6 22/7 22/7", DANGLING, "chain"),
    direct(
        "an id of ten digits in a reference",
        chain("'API_RESPONSE_1000000000'"),
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING + "; ours: meant as a reference, and names no call",
        "chain",
    ),
    direct(
        "a bare id of ten digits",
        chain("API_RESPONSE_1000000000"),
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING + "; ours: meant as a reference, and names no call",
        "chain",
    ),
    direct(
        "a bare word for an id",
        chain("API_RESPONSE_one"),
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING + "; ours: meant as a reference, and names no call",
        "chain",
    ),
    direct(
        "a reference in lower case and quotes",
        chain("'api_response_1'"),
        ".375 .375 .375 .375 1/6 22/7 22/7",
        "C, rule 10: it is text, of another type than a table; 3.3: one of seven points is lost",
        "chain",
    ),
    direct(
        "a bare word in lower case",
        chain("api_response_1"),
        "0 0 0 0 0 -3 -3",
        MALFORMED + "ours: neither a value nor a reference",
        "chain",
    ),
    direct(
        "a field that does not exist",
        chain("API_RESPONSE_1.nowhere"),
        ".4 .4 .4 .4 1/6 22/7 22/7",
        "2.2: execution fails and nothing else; 3.3: one of seven points is lost",
        "chain",
    ),
]
