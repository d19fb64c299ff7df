"""Runs the Python client of docs/clients.md that uses the package `websockets`, and checks what it printed.

It takes the URL of the server.

Then it checks what the contract promises to every client of the socket: one terminal event, which is the
last, a conversation that goes on, and an answer to `clear`. Needs the package `websockets`.
"""

import contextlib
import io
import json
import pathlib
import re
import sys
from urllib.parse import urlsplit

from websockets.sync.client import connect

SECONDS = 20


def run_documented_client(host: str) -> None:
    page = pathlib.Path(__file__).parents[2].joinpath("docs/clients.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    [block] = [text for text in blocks if "websockets" in text]
    if "localhost:8080" not in block:
        sys.exit("the Python client of docs/clients.md does not connect to localhost:8080")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.replace("localhost:8080", host), "docs/clients.md", "exec"), {})
    lines = printed.getvalue().splitlines()
    assert any(line.startswith("Let me look that up.") for line in lines), lines
    assert any("'tool': 'get_weather'" in line and "'completed'" in line for line in lines), lines


def ask(socket, message: dict) -> list[dict]:
    """Sends a message and returns the events up to the last one."""
    socket.send(json.dumps(message))
    events = []
    while not events or events[-1]["type"] not in ("done", "error", "cleared"):
        events.append(json.loads(socket.recv(timeout=SECONDS)))
    return events


def converse(host: str) -> None:
    with connect(f"ws://{host}/ws/chat", max_size=None) as socket:
        *tokens, done = ask(socket, {"message": "Hello"})
        assert {event["type"] for event in tokens} == {"token"}, tokens
        assert done["type"] == "done", done
        assert "".join(event["data"] for event in tokens) == done["data"], done
        assert "message 2 of our conversation" in ask(socket, {"message": "And now?"})[-1]["data"]
        assert ask(socket, {"type": "clear"}) == [{"type": "cleared", "data": ""}]
        assert "the first message" in ask(socket, {"message": "Hello again"})[-1]["data"]
        assert ask(socket, {"message": 5})[-1]["code"] == "invalid_request"


if __name__ == "__main__":
    address = urlsplit(sys.argv[1]).netloc
    run_documented_client(address)
    converse(address)
    print("The Python client of docs/clients.md works, and the conversation goes as documented.")
