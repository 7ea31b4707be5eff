"""A headless Chromium that is driven over its DevTools protocol: open pages, press keys, ask, take pictures.

For pictures in the docs and for tests. It needs Chromium or Chrome on the path (or in ``CALLWRIGHT_CHROMIUM``) and the
package websockets, and nothing else.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def chromium() -> str | None:
    """The program, or ``None`` where none is installed."""
    stated = os.environ.get("CALLWRIGHT_CHROMIUM")
    return stated or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a fresh browser. Wait for what a page shows (:meth:`until`), never for a time."""

    def __init__(self, *, width: int = 1440, height: int = 900, patience: float = 60.0) -> None:
        self._patience = patience
        self._home = tempfile.TemporaryDirectory(prefix="callwright-chromium-", ignore_cleanup_errors=True)
        program = chromium()
        assert program is not None, "no Chromium is installed"
        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
                "--remote-debugging-port=0",
                f"--user-data-dir={self._home.name}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = self._port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=patience) as answer:
            page = next(one for one in json.load(answer) if one["type"] == "page")
        self._socket = connect(page["webSocketDebuggerUrl"], max_size=None, open_timeout=patience)
        self._next = 0
        #: What pages complained of: exceptions, errors in the console, and what the policy refused.
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.command(f"{domain}.enable")
        self.resize(width, height)

    def _port(self) -> str:
        file, begun = Path(self._home.name, "DevToolsActivePort"), time.monotonic()
        while time.monotonic() - begun < self._patience:
            if file.exists() and (text := file.read_text()).strip():
                return text.split("\n")[0]
            time.sleep(0.05)
        raise TimeoutError("Chromium did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()

    def command(self, method: str, **parameters: Any) -> Any:
        """Send a command of the protocol, and return its result."""
        self._next += 1
        self._socket.send(json.dumps({"id": self._next, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._socket.recv(self._patience))
            if told.get("id") == self._next:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return told.get("result", {})
            self._hear(told)

    def _hear(self, told: dict[str, Any]) -> None:
        parameters = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details.get("text"))))
        elif told.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        """Make the page so large, in CSS pixels."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def dark(self, yes: bool = True) -> None:
        """What the page is told that its reader prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if yes else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Go to an address."""
        self.command("Page.navigate", url=url)

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        told = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(str(told["exceptionDetails"].get("exception", {}).get("description")))
        return told["result"].get("value")

    def until(self, expression: str) -> Any:
        """Wait until an expression is true, and return it."""
        begun = time.monotonic()
        while time.monotonic() - begun < self._patience:
            try:
                if found := self.ask(expression):
                    return found
            except RuntimeError:
                pass  # the page is being replaced
            time.sleep(0.05)
        raise TimeoutError(f"{expression} did not become true; the page shows: {self.text()[:600]}")

    def text(self) -> str:
        """What the page shows."""
        return str(self.ask("document.body.innerText") or "")

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.command("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, selector: str) -> None:
        """Click on what a selector finds first."""
        self.until(f"document.querySelector({json.dumps(selector)}) !== null")
        self.ask(f"document.querySelector({json.dumps(selector)}).click()")

    def write(self, selector: str, text: str) -> None:
        """Type a text into a field in the place of what is there."""
        self.until(f"document.querySelector({json.dumps(selector)}) !== null")
        self.ask(f"(e => {{ e.focus(); e.select && e.select(); }})(document.querySelector({json.dumps(selector)}))")
        if not text:
            self.ask(
                f"(e => {{ e.value = ''; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
                f"(document.querySelector({json.dumps(selector)}))"
            )
            return
        self.command("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """Save what is seen as a PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"]))
