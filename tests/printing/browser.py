"""A headless Chromium driven over its debugging pipe: enough to click, type, ask and take pictures; needs only the program."""
from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def find_browser() -> str | None:
    """The browser's program, None where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class BrowserError(Exception):
    """The browser or the page answered with an error, or not at all."""


class Browser:
    """One page. Commands go down a pipe and answers come up another, each ended by a zero byte (`--remote-debugging-pipe`)."""

    def __init__(self, program: str, width: int = 1400, height: int = 900, dark: bool = False, seconds: float = 60) -> None:
        self.seconds, self.number, self.rest, self.events = seconds, 0, b"", []
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--no-first-run", "--disable-extensions", "--disable-background-networking", "--force-color-profile=srgb",
                 "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", f"--window-size={width},{height}"]
        command = 'exec "$0" "$@" 3<&"$DOWN" 4>&"$UP"'
        self.process = subprocess.Popen(["bash", "-c", command, program, *flags, "about:blank"], pass_fds=(down_read, up_write),
                                        env=dict(os.environ, DOWN=str(down_read), UP=str(up_write)),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down_read)
        os.close(up_write)
        os.set_blocking(self.up, False)
        self.session = ""
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.down)
        os.close(self.up)
        self.folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.down, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + self.seconds
        while b"\0" not in self.rest:
            try:
                read = os.read(self.up, 1 << 20)
                if not read:
                    raise BrowserError("the browser is gone")
                self.rest += read
            except BlockingIOError:
                if time.monotonic() > end:
                    raise BrowserError("the browser does not answer") from None
                time.sleep(0.002)
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + self.seconds
        while self.ask("document.readyState") != "complete" or self.ask("location.href") == "about:blank":
            if time.monotonic() > end:
                raise BrowserError("the page does not load")
            time.sleep(0.02)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page (a promise is waited for)."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def frame(self) -> None:
        """Wait until the page has drawn what was asked for."""
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event of the browser's own: mousePressed, mouseReleased, mouseMoved or mouseWheel."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Move there, press and let go."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.frame()

    def click_on(self, selector: str) -> None:
        """Click on the middle of an element, once it is in sight."""
        x, y = self.ask(f"(() => {{ const element = document.querySelector({json.dumps(selector)});" + """
            element.scrollIntoView({block: 'nearest'});
            const place = element.getBoundingClientRect();
            return [place.left + place.width / 2, place.top + place.height / 2]; })()""")
        self.click(x, y)

    def key(self, key: str, shift: bool = False) -> None:
        """Press and let go of a key."""
        code = _KEYS.get(key, ord(key[0].upper()))
        more = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **more, **({"text": key} if len(key) == 1 else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **more)
        self.frame()

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)
        self.frame()

    def picture(self, path: Path) -> Path:
        """A screenshot as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
        return path

    def complaints(self) -> list[str]:
        """What the page has logged as errors, and what its policy refused."""
        self.call("Runtime.evaluate", expression="0")
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"]["exceptionDetails"])[:1000])
            elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append(json.dumps(event["params"]["args"])[:1000])
        return found
