"""Speed of environments over their fronts, against the bare low-level server of the mcp SDK in the same run.

Per call: calls a second one after the other, and CPU time of client and server together; the best of several rounds in
which served and bare take turns. Both serve the same tool with the same listing, a dictionary looked up; the difference
is what sessions, outcomes and isolation cost. Then the stateful environments themselves: a call in process, opening,
resetting and forking sessions, their memory, and Prove's scale of 256 rollouts of 10 calls, with ``copy.deepcopy`` of
the same state as the foil.

    python benchmarks/mcp_speed.py            # two to three minutes
    python benchmarks/mcp_speed.py --quick --json
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.environments.functions import FunctionEnvironment

ACCOUNTS = {f"ACC-{number}": number * 100 for number in range(100)}
#: CPU time of a process so far, in seconds, where Linux tells it.
TICK = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01


@cw.tool(read_only=True)
def get_balance(account_id: str) -> dict[str, Any]:
    """The balance of an account."""
    if account_id not in ACCOUNTS:
        raise cw.ToolError("NOT_FOUND", f"there is no account {account_id!r}")
    return {"account_id": account_id, "balance": ACCOUNTS[account_id]}


class Balances(FunctionEnvironment):
    """The tool as an environment; pure, so that calls run where they arrive."""

    @property
    def pure(self) -> bool:
        return True


def served_server() -> Any:
    from callwright_plugins.mcp_servers.serving.service import Service, make_server

    return make_server(Service(Balances("balances", [get_balance])))


def bare_server() -> Any:
    """The same tool with nothing but the SDK, which checks no arguments and knows no sessions."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    from callwright_plugins.mcp_servers.wire import listed_tool

    listing = types.ListToolsResult(tools=[types.Tool.model_validate(listed_tool(get_balance.spec))])

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return listing

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        value = {"account_id": params.arguments["account_id"], "balance": ACCOUNTS[params.arguments["account_id"]]}
        text = types.TextContent(type="text", text=json.dumps(value))
        return types.CallToolResult(content=[text], structured_content=value)

    return Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def serve(kind: str, front: str, port: int) -> None:
    """Be the server process."""
    if front == "stdio":
        if kind == "served":
            from callwright_plugins.mcp_servers.serving.service import Service
            from callwright_plugins.mcp_servers.serving.transports import serve_stdio

            serve_stdio(Service(Balances("balances", [get_balance])))
            return
        from mcp.server.stdio import stdio_server

        async def main() -> None:
            server = bare_server()
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())

        asyncio.run(main())
        return
    if kind == "served":
        from callwright_plugins.mcp_servers.serving.service import Service
        from callwright_plugins.mcp_servers.serving.transports import HttpOptions, serve_http

        service = Service(Balances("balances", [get_balance]))
        serve_http(service, HttpOptions(port=port), lambda url: print(url, flush=True))
        return
    import socket

    import uvicorn

    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or every answer waits for 40 ms
    sock.bind(("127.0.0.1", port))
    app = bare_server().streamable_http_app(json_response=True)
    print(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[sock])


# Fronts ---------------------------------------------------------------------------------------------------------------


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK


def children() -> list[int]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(pid) for pid in (task / "children").read_text().split()]
    return found


Call = Callable[[dict[str, Any], Any], Awaitable[Any]]


async def measure(call: Call, count: int, pids: list[int], meta: Any = None) -> dict[str, float]:
    """Seconds a call and CPU microseconds a call, client and server together."""
    names = list(ACCOUNTS)
    for number in range(20):
        await call({"account_id": names[number]}, meta)
    server, client, wall = sum(map(cpu_of, pids)), time.process_time(), time.perf_counter()
    for number in range(count):
        await call({"account_id": names[number % 100]}, meta)
    wall, client = time.perf_counter() - wall, time.process_time() - client
    server = sum(map(cpu_of, pids)) - server
    return {"wall": wall / count, "cpu": (client + server) / count}


@asynccontextmanager
async def connected(kind: str, front: str) -> Any:
    """A client of this server over this front, and the ids of the server's processes."""
    from mcp import Client, StdioServerParameters

    if front == "memory":
        async with Client(served_server() if kind == "served" else bare_server()) as client:
            yield client, []
        return
    words = [str(Path(__file__).resolve()), "--serve", kind, "--front", front]
    if front == "stdio":
        before = set(children())
        async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
            yield client, [pid for pid in children() if pid not in before]
        return
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            async with Client(process.stdout.readline().strip()) as client:
                yield client, [process.pid]
        finally:
            process.terminate()


async def front(name: str, count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Served and bare, taking turns."""
    best: dict[str, dict[str, float]] = {}
    async with connected("bare", name) as (bare, bare_pids), connected("served", name) as (served, served_pids):
        sides = {"bare": (bare, bare_pids, None), "served": (served, served_pids, {"io.callwright/session": "bench"})}
        for client, *_ in sides.values():
            await client.list_tools()
        for number in range(rounds):
            for kind in sorted(sides, reverse=number % 2 == 1):
                client, pids, meta = sides[kind]

                async def call(arguments: dict[str, Any], meta: Any, client: Any = client) -> Any:
                    return await client.call_tool("get_balance", arguments, meta=meta)

                found = await measure(call, count, pids, meta)
                old = best.get(kind, found)
                best[kind] = {key: min(found[key], old[key]) for key in found}
    return best


# In process -----------------------------------------------------------------------------------------------------------


def best_of(rounds: int, work: Callable[[], object], count: int) -> float:
    """CPU seconds for one of ``count``, the best round."""
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found) / count


def banking_calls(session: Any) -> list[tuple[str, dict[str, Any]]]:
    """Reads of the accounts that there are."""
    accounts = [row["id"] for row in session.helper("_get_rows", {"table": "accounts", "limit": 50}).value]
    return [("get_account", {"account_id": id}) for id in accounts]


def environment_figures(rounds: int, sessions: int) -> dict[str, float]:
    environment: Any = cw.environment("banking")
    session = environment.open()
    calls = banking_calls(session)
    kinds = {session.call(tool, arguments).kind for tool, arguments in calls}
    if kinds != {"ok"}:
        raise SystemExit(f"the calls of the benchmark came to {kinds}")

    def call() -> None:
        for _ in range(20):
            for tool, arguments in calls:
                session.call(tool, arguments)

    def fork() -> None:
        for _ in range(sessions):
            session.fork()

    def reset() -> None:
        for _ in range(sessions):
            session.reset()

    def rollouts() -> None:
        for _ in range(256):
            one = environment.open()
            for number in range(10):
                one.call(*calls[number % len(calls)])
            one.close()

    def open_() -> None:
        for _ in range(sessions):
            environment.open()

    state = session.helper("_dump_state", {}).value
    figures = {
        "call_us": best_of(rounds, call, 20 * len(calls)) * 1e6,
        "open_us": best_of(rounds, open_, sessions) * 1e6,
        "fork_us": best_of(rounds, fork, sessions) * 1e6,
        "reset_us": best_of(rounds, reset, sessions) * 1e6,
        "prove_step_cpu_s": best_of(rounds, rollouts, 1),
        "deepcopy_us": best_of(min(rounds, 3), lambda: copy.deepcopy(state), 1) * 1e6,
    }
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [environment.open() for _ in range(sessions)]
    for one in kept:
        one.call(*calls[0])
        one.digest()
    figures["session_kib"] = (tracemalloc.get_traced_memory()[0] - before) / sessions / 1024
    tracemalloc.stop()
    return figures


def in_process(count: int, rounds: int) -> float:
    session = Balances("balances", [get_balance]).open()

    def work() -> None:
        for number in range(count):
            session.call("get_balance", {"account_id": f"ACC-{number % 100}"})

    return best_of(rounds, work, count)


def shown(found: dict[str, Any]) -> Iterator[str]:
    yield f"in process, the same tool: {found['in_process_us']:.1f} us of CPU a call"
    yield f"{'front':<8}{'':<8}{'calls/s':>10}{'CPU us a call':>16}"
    for name, sides in found["fronts"].items():
        for kind in ("bare", "served"):
            side = sides[kind]
            yield f"{name:<8}{kind:<8}{1 / side['wall']:>10.0f}{side['cpu'] * 1e6:>16.0f}"
        ratios = f"{sides['wall_ratio']:.2f} times the time and {sides['cpu_ratio']:.2f} times the CPU of bare"
        yield f"{'':<8}served takes {ratios}"
    figures = found["banking"]
    yield (
        f"banking in process: call {figures['call_us']:.1f} us, open {figures['open_us']:.2f} us, "
        f"reset {figures['reset_us']:.2f} us, fork {figures['fork_us']:.2f} us, "
        f"{figures['session_kib']:.1f} KiB a session"
    )
    yield (
        f"256 rollouts of 10 calls: {figures['prove_step_cpu_s']:.3f} s of CPU; deepcopy of one state: "
        f"{figures['deepcopy_us'] / 1000:.1f} ms"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--quick", action="store_true", help="fewer calls")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--json", action="store_true")
    options.add_argument("--serve", choices=["served", "bare"], help=argparse.SUPPRESS)
    options.add_argument("--front", choices=["stdio", "http"], help=argparse.SUPPRESS)
    options.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.serve:
        serve(chosen.serve, chosen.front, chosen.port)
        return
    count = 100 if chosen.quick else 400
    found: dict[str, Any] = {"in_process_us": in_process(5000, chosen.rounds) * 1e6, "fronts": {}}
    for name, factor in (("memory", 4), ("stdio", 1), ("http", 1)):
        sides = asyncio.run(front(name, count * factor, chosen.rounds))
        ratios = {f"{what}_ratio": sides["served"][what] / sides["bare"][what] for what in ("wall", "cpu")}
        found["fronts"][name] = {**sides, **ratios}
    found["banking"] = environment_figures(chosen.rounds, 500 if chosen.quick else 2000)
    print(json.dumps(found) if chosen.json else "\n".join(shown(found)))


if __name__ == "__main__":
    main()
