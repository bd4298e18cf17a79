"""A client that asks a studio's application directly, so that requests can be as wrong as a test wants them to be."""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from understudy.studio.server import application, studio_of
from understudy.studio.workspace import Choices

HOST = "127.0.0.1:8321"
ORIGIN = f"http://{HOST}"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    @property
    def words(self) -> str:
        """The page's words without its markup."""
        return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", self.text)).strip()


class Client:
    """Somebody with a browser; `enter` uses the token that the start printed."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.studio = studio_of(folder, 8321, **given)
        self.application = application(self.studio)
        self.cookie = ""

    def enter(self) -> "Client":
        answer = self.get(f"/start/{self.studio.doors.token}")
        assert answer.status == 200
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return self

    @property
    def csrf(self) -> str:
        return str(self.studio.doors.session(self.cookie).csrf)

    def get(self, path: str, **given: Any) -> Answer:
        return self.ask("GET", path, **given)

    def post(self, path: str, form: Mapping[str, str] | None = None, **given: Any) -> Answer:
        """A form as the studio's own pages send it."""
        pairs = {"csrf": self.csrf if self.cookie else "", **(form or {})}
        return self.ask("POST", path, body=urlencode(pairs).encode(), **given)

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str | None] | None = None,
        more: Sequence[tuple[str, str]] = (),
        pieces: int = 1,
    ) -> Answer:
        """Any request; a header that is None is left out."""
        usual: dict[str, str | None] = {"host": HOST, "cookie": self.cookie or None}
        if method == "POST":
            usual |= {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
            usual |= {"content-length": str(len(body))}
        pairs = [(name, value) for name, value in (usual | dict(headers or {})).items() if value is not None]
        raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in [*pairs, *more]]
        place, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": place, "raw_path": place.encode(), "query_string": query.encode(), "root_path": "",
            "headers": raw, "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8321),
        }  # fmt: skip
        return asyncio.run(_asked(self.application, scope, body, pieces))

    def until_done(self, run: str, seconds: float = 240.0) -> str:
        """Waits for the end of a run; its outcome."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.studio.runs.find(run.rpartition("/")[2])
            if not found.working:
                return str(found.outcome)
            time.sleep(0.2)
        raise AssertionError("the run did not end in time")


async def _asked(application: Any, scope: dict[str, Any], body: bytes, pieces: int) -> Answer:
    size = max(1, -(-len(body) // pieces))
    parts = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if parts:
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
        await asyncio.sleep(3600)
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], headers, b"".join(message.get("body", b"") for message in sent))


def begun(client: Client, table: str = "people.csv", **more: str) -> str:
    answer = client.post("/tables", {"table": table, **more})
    assert answer.status == 303, answer.words
    return answer.headers["location"].removesuffix("/schema")


def changed(client: Client, draft: str, action: str, **form: str) -> Answer:
    version = re.search(r'name="version" value="(\w+)"', client.get(f"{draft}/schema").text)
    assert version is not None
    return client.post(f"{draft}/change/{action}", {"version": version[1], **form})


def text_of(client: Client, draft: str) -> str:
    return client.get(f"{draft}/schema.yaml").text


def finished(client: Client, table: str = "people.csv") -> str:
    """The draft of a small table whose schema is complete."""
    draft = begun(client, table)
    text = "understudy: 1\nunit: row\ncolumns:\n  sex: {kind: category, labels: [F, M]}\n"
    answer = changed(client, draft, "text", text=f"{text}  age: {{kind: integer, lower: 0, upper: 99, bins: 10}}\n")
    assert answer.status == 303
    return draft


def offered(page: str) -> dict[str, str]:
    """What the page of confirmation has filled in."""
    return dict(re.findall(r'name="(confirmed|name)" value="([^"]*)"', page))


def paid(client: Client, draft: str, **form: str) -> Answer:
    """Confirms the run as the page offers it, at a small budget of a method that is quick."""
    key = draft.rpartition("/")[2]
    client.studio.workspace.draft(key).choose(Choices(0.5, 0.0, "independent"))
    page = client.get(f"{draft}/confirm").text
    said = offered(page)
    return client.post(f"{draft}/run", {**said, "dataset": "", "cap_epsilon": "2", "cap_delta": "0", **form})
