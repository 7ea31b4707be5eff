"""A server with a fault, named by the first word of its command line. It knows nothing of Callwright.

It speaks the protocol by itself, with nothing but the standard library: nobody's SDK is between it and the tests, and
it starts at once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FAULT = sys.argv[1]
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else None
NOTE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
READ_ONLY = {"readOnlyHint": True}
notes: list[str] = []
reads = 0


def tool(name: str, schema: dict[str, Any] = NOTHING, *, read_only: bool = False, **more: Any) -> dict[str, Any]:
    annotations = READ_ONLY if read_only else {"readOnlyHint": False, "destructiveHint": False}
    return {"name": name, "description": name, "inputSchema": schema, "annotations": annotations, **more}


TOOLS = {
    "add_note": tool("add_note", NOTE),
    "list_notes": tool("list_notes", read_only=True),
    "count_notes": tool("count_notes", read_only=True),
    "forget": tool("forget", NOTE),
    "remove": tool("remove", NOTE),
    "wipe": tool("wipe"),
    "crash": tool("crash"),
    "crash_once": tool("crash_once"),
    "hang": tool("hang", read_only=True),
    "fail": tool("fail", NOTE),
    "refuse": tool("refuse", NOTE),
    "where": tool("where", read_only=True),
    "ask": tool("ask", read_only=True),
    "clock": tool("clock", read_only=True),
    "seen": tool("seen", read_only=True),
}
if FAULT == "names":
    definitions = {"Note": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}
    referring = {"type": "object", "properties": {"note": {"$ref": "#/$defs/Note"}}, "required": ["note"]}
    TOOLS = {
        "notes.add!": tool("notes.add!", {**referring, "$defs": definitions}),
        "notes add!": tool("notes add!"),
        "x" * 80: tool("x" * 80),
        "strange": tool("strange", outputSchema={"type": "object", "properties": {"a": {"type": "nonsense"}}}),
        "wide": tool("wide", read_only=True, outputSchema={"type": "object", "required": ["never"]}),
    }
if FAULT == "readers":
    TOOLS = {name: TOOLS[name] for name in ("list_notes", "count_notes", "clock")}
if FAULT == "unannotated":
    TOOLS = {name: {key: said for key, said in one.items() if key != "annotations"} for name, one in TOOLS.items()}
if FAULT == "drifting" and FOLDER is not None:
    mark = FOLDER / "started"
    if mark.exists():
        TOOLS["extra"] = tool("extra")
    mark.write_text("")
if FAULT == "dead":
    sys.exit("this server never starts")
if FAULT == "silent":
    time.sleep(3600)


def saved() -> list[str]:
    """What is remembered: in the folder, where others see it, or in memory."""
    if FOLDER is not None and FAULT != "drifting":
        file = FOLDER / "notes.json"
        return json.loads(file.read_text()) if file.exists() else []
    return notes


def save(found: list[str]) -> None:
    if FOLDER is not None and FAULT != "drifting":
        (FOLDER / "notes.json").write_text(json.dumps(found))
    notes[:] = found


def run(name: str, arguments: dict[str, Any]) -> Any:
    global reads
    match name:
        case "add_note" | "notes.add!":
            text = arguments["text"] if "text" in arguments else arguments["note"]["text"]
            save([*saved(), text])
            return f"noted {text}"
        case "list_notes":
            if FAULT == "liar":
                save([*saved(), "listed"])
            return saved()
        case "count_notes":
            reads += 1
            return {"count": len(saved()), "reads": reads} if FAULT == "counting" else {"count": len(saved())}
        case "forget":
            return {"success": True, "message": "forgotten"}
        case "remove":  # what was not there was "removed", too
            if arguments["text"].startswith("canary"):
                save([*saved(), "removed"])
            else:
                save([note for note in saved() if note != arguments["text"]])
            return "removed"
        case "wipe":
            save([])
            return "wiped"
        case "crash":
            os._exit(3)
        case "crash_once":
            assert FOLDER is not None
            mark = FOLDER.parent / f"{os.environ['MARK']}"
            if not mark.exists():
                mark.write_text("")
                os._exit(3)
            return "survived"
        case "where":
            return f"{FOLDER}/inside and {os.environ.get('NOTES', '')}"
        case "clock":
            return str(time.time_ns())
        case "seen":
            return {"folder": sorted(path.name for path in FOLDER.iterdir()) if FOLDER else []}
    return "done"


class Refusal(Exception):
    """An error of JSON-RPC."""


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "9" if FAULT == "newer" else "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": list(TOOLS.values())}
        case "tools/call":
            name, arguments = params["name"], params.get("arguments") or {}
            if name == "refuse":
                raise Refusal(int(arguments["text"].split()[0]), arguments["text"])
            if name == "fail":
                return {"content": [{"type": "text", "text": arguments["text"]}], "isError": True}
            value = run(name, arguments)
            result = {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}
            return {**result, "structuredContent": value} if isinstance(value, dict) else result
    raise Refusal(-32601, f"there is no method {method}")


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or request.get("params", {}).get("name") == "hang":
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = answer(request["method"], request.get("params", {}))
        except Refusal as refusal:
            reply["error"] = {"code": refusal.args[0], "message": refusal.args[1]}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
