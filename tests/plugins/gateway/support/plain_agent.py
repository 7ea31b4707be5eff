"""An agent that knows nothing of Callwright but its environment: a loop over OpenAI's client and tools by HTTP."""

from __future__ import annotations

import json
import os
import sys
import urllib.request

told = json.load(sys.stdin)
mode = sys.argv[1] if len(sys.argv) > 1 else ""
if mode == "dies":
    sys.exit("no such luck")
if mode == "hangs":
    import time

    time.sleep(600)

from openai import OpenAI  # noqa: E402  # who dies or hangs needs none

client = OpenAI()
messages = list(told["messages"])
while True:
    if mode == "stream":
        said = {"role": "assistant", "content": "", "tool_calls": []}
        for chunk in client.chat.completions.create(model="m", messages=messages, tools=told["tools"], stream=True):
            for choice in chunk.choices:
                said["content"] += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    if piece.id:
                        said["tool_calls"].append(
                            {
                                "id": piece.id,
                                "type": "function",
                                "function": {"name": piece.function.name, "arguments": ""},
                            }
                        )
                    said["tool_calls"][-1]["function"]["arguments"] += piece.function.arguments or ""
        if not said["tool_calls"]:
            del said["tool_calls"]
    else:
        made = client.chat.completions.create(model="m", messages=messages, tools=told["tools"])
        said = made.choices[0].message.model_dump(exclude_none=True)
    messages.append(said)
    if not said.get("tool_calls"):
        break
    for call in said["tool_calls"]:
        request = urllib.request.Request(
            f"{os.environ['CALLWRIGHT_TOOLS_URL']}/{call['function']['name']}",
            call["function"]["arguments"].encode(),
            {"x-call-id": call["id"]},
        )
        with urllib.request.urlopen(request) as answer:
            content = json.load(answer)["content"]
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
print(said["content"])
