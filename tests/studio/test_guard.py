"""The doors of the studio: requests that must not pass, each with the refusal that it deserves."""

import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

import understudy as us

pytest.importorskip("starlette", reason="needs the extra [studio]")

from tests.studio.client import HOST, ORIGIN, Client
from understudy.studio import guard
from understudy.studio.guard import Doors, hashed, read_password
from understudy.studio.workspace import short_id

PAGES = ("/", "/tables", "/ledger", "/ledger/export", "/confidential", "/accounts", "/drafts/0123456789abcdef/schema")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "tables"
    place.mkdir()
    (place / "people.csv").write_text("sex,age\nSECRETVALUE,44\n", encoding="utf-8")
    (tmp_path / "outside.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    return place


@pytest.fixture
def client(folder: Path) -> Client:
    return Client(folder).enter()


FOREIGN_HOSTS = (
    "evil.example", "evil.example:8321", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8322", "localhost", "[::1]:8321",
    "127.1:8321", "127.0.0.1:8321.evil.example", "127.0.0.1:8321@evil.example", "evil@127.0.0.1:8321", "0.0.0.0:8321",
    "",
)  # fmt: skip
FOREIGN_ORIGINS = (
    "https://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:80", "https://127.0.0.1:8321",
    "http://127.0.0.1:8321.evil.example", "http://evil.example:8321", "file://", "http://127.0.0.1:8321/",
    "http://127.0.0.1:9999",
)  # fmt: skip
TRAVERSALS = (
    "/static/../guard.py", "/static/..%2fguard.py", "/static/%2e%2e/guard.py", "/static/guard.py",
    "/static//etc/passwd",
    "/drafts/../../etc/schema", "/drafts/..%2f..%2fetc/schema", "/releases/../people.csv/card", "/releases/%00/card",
    "/releases/people.csv", "/runs/../../x", "/confidential/../x/report", "/confidential/x/tables/..%2freport.html",
    "/.understudy-studio/runs", "/people.csv", "//evil.example/", "/start/", "/start/x/y",
)  # fmt: skip
OUTSIDE = (
    "../outside.csv", "/etc/passwd", "people.csv/../../outside.csv", "link.csv", "linked/outside.csv", "*.csv", ".",
    "people.csv::multiline", "sqlite:people.db::x", "s3://bucket/x.parquet", "file:///etc/passwd", "people.csv\0",
    "delta:../x", "http://169.254.169.254/x.csv", "~/people.csv", "PEOPLE.CSV ", "",
)  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_name_that_is_not_ours_is_turned_away(client: Client, host: str) -> None:
    for path in ("/", "/static/studio.css"):
        answer = client.get(path, headers={"host": host})
        assert answer.status == 421
        assert "New release" not in answer.text


def test_a_request_without_a_name_or_with_two_is_turned_away(client: Client) -> None:
    assert client.get("/", headers={"host": None}).status == 421
    assert client.get("/", more=[("host", "evil.example")]).status == 400
    assert client.get("/", more=[("cookie", "x=y")]).status == 400
    assert client.post("/demo", more=[("origin", "https://evil.example")]).status == 400


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_form_of_another_page_is_turned_away(client: Client, origin: str) -> None:
    assert client.post("/demo", headers={"origin": origin}).status == 403
    assert client.studio.workspace.drafts() == []


def test_a_form_that_does_not_say_where_it_comes_from_is_turned_away(client: Client) -> None:
    assert client.post("/demo", headers={"origin": None}).status == 403
    assert client.post("/demo", headers={"sec-fetch-site": "cross-site"}).status == 403
    assert client.post("/demo", headers={"sec-fetch-site": "same-site"}).status == 403
    assert client.studio.workspace.drafts() == []


@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket", "same-origin"])
def test_another_page_cannot_load_ours(client: Client, mode: str) -> None:
    asked = {"sec-fetch-site": "cross-site", "sec-fetch-mode": mode}
    assert client.get("/static/studio.css", headers=asked).status == 403
    assert client.get("/", headers={"origin": "https://evil.example"}).status == 403


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_shown_without_a_session(client: Client, path: str) -> None:
    for cookie in (None, "", "understudy-8321=", f"understudy-8321={'0' * 64}", "other=1", "understudy-8321=\u00e9"):
        answer = client.get(path, headers={"cookie": cookie})
        assert answer.status == 401
        assert "people.csv" not in answer.text


@pytest.mark.parametrize("token", ["", "x", "0" * 64, "%00", "../start"])
def test_a_wrong_token_opens_nothing(folder: Path, token: str) -> None:
    client = Client(folder)
    answer = client.get(f"/start/{token}")
    assert answer.status in (401, 404)
    assert "set-cookie" not in answer.headers


def test_the_token_works_once(folder: Path) -> None:
    client = Client(folder)
    token = client.studio.doors.token
    first, second = client.get(f"/start/{token}"), client.get(f"/start/{token}")
    assert (first.status, second.status) == (200, 401)
    assert "set-cookie" not in second.headers
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert token not in first.text + cookie


@pytest.mark.parametrize("csrf", ["", "x", "0" * 64, "\u00e9"])
def test_a_form_without_the_secret_of_its_session_is_turned_away(client: Client, csrf: str) -> None:
    assert client.post("/demo", {"csrf": csrf}).status == 403
    other = Client(client.studio.workspace.root).enter()
    assert client.post("/demo", {"csrf": other.csrf}).status == 403
    assert client.studio.workspace.drafts() == []


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/json", "text/plain", ""])
def test_only_forms_are_understood(client: Client, kind: str) -> None:
    assert client.post("/demo", headers={"content-type": kind}).status == 415


def test_a_huge_form_is_not_read_to_its_end(client: Client) -> None:
    huge = urlencode({"csrf": client.csrf, "text": "x" * guard.MOST_FORM_BYTES}).encode()
    assert client.ask("POST", "/demo", body=huge).status == 413
    assert client.ask("POST", "/demo", body=huge, headers={"content-length": "10"}, pieces=64).status == 413
    assert client.ask("POST", "/demo", body=b"", headers={"content-length": "9" * 30}).status == 413
    assert client.ask("POST", "/demo", body=b"", headers={"content-length": "-1"}).status == 413


def test_a_form_that_cannot_be_read_is_refused(client: Client) -> None:
    csrf = f"csrf={client.csrf}"
    many = "&".join(f"a{number}=1" for number in range(guard.MOST_FIELDS + 1))
    for body in (f"{csrf}&{csrf}", f"{csrf}&a=%ff%fe", f"{csrf}&{many}"):
        assert client.ask("POST", "/demo", body=body.encode()).status == 400
    assert client.ask("POST", "/demo", body=b"\xff\xfe").status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_other_methods_are_turned_away(client: Client, method: str) -> None:
    assert client.ask(method, "/").status == 405


def test_a_change_cannot_be_made_by_looking(client: Client) -> None:
    for path in ("/demo", "/drafts/0123456789abcdef/run", "/runs/0123456789abcdef/cancel"):
        assert client.get(path).status in (404, 405)


@pytest.mark.parametrize("path", TRAVERSALS)
def test_addresses_lead_nowhere_else(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status in (401, 404)
    assert "SECRETVALUE" not in answer.text
    assert "import" not in answer.text


def test_a_long_address_is_turned_away(client: Client) -> None:
    assert client.get("/" + "x" * 3000).status == 414
    assert client.get("/?" + "x" * 3000).status == 414


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_table_outside_the_folder_is_opened(client: Client, folder: Path, tmp_path: Path, name: str) -> None:
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    (folder / "linked").symlink_to(tmp_path)
    for field in ("table", "codebook", "like", "database"):
        if not name and field != "table":
            continue
        form = {"table": "people.csv"} if field != "table" else {}
        answer = client.post("/tables", {**form, field: name})
        assert answer.status == 422, (field, name)
        assert "root:" not in answer.text
    assert client.studio.workspace.drafts() == []


@pytest.mark.parametrize("inner", ["::multiline", "x::delimiter=;", "a\nb", "x" * 300])
def test_no_part_of_a_file_smuggles_in_another_place(client: Client, inner: str) -> None:
    assert client.post("/tables", {"table": "people.csv", "inner": inner}).status == 422


def test_scripts_in_names_stay_text(client: Client, folder: Path) -> None:
    (folder / "<img src=x onerror=alert(1)>.csv").write_text('"<script>alert(1)</script>",age\n', encoding="utf-8")
    listed = client.get("/tables")
    assert "<img src=x" not in listed.text
    assert "&lt;img src=x" in listed.text
    answer = client.post("/tables", {"table": "<img src=x onerror=alert(1)>.csv", "names_are_right": "yes"})
    page = client.get(answer.headers["location"])
    assert page.status == 200
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert" in page.text
    assert "img" not in answer.headers["location"]
    refused = client.get("/%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script>alert" not in refused.text


def test_every_answer_forbids_what_is_not_ours(client: Client) -> None:
    for path in ("/", "/tables", "/nothing", "/static/htmx.js"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    assert client.get("/").headers["cache-control"] == "no-store"


def test_pages_hold_no_script_or_style_of_their_own(client: Client) -> None:
    draft = client.post("/demo").headers["location"]
    for path in ("/", "/tables", draft, draft.replace("schema", "budget"), "/ledger", "/confidential"):
        text = client.get(path).text
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick=" not in text
        assert text.count("<script") == text.count('<script src="/static/') == 2
        assert "https://" not in text.replace("https://NAME", "")


def test_a_fault_tells_nobody_anything(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> None:
        raise RuntimeError("SECRETVALUE")

    monkeypatch.setattr(type(client.studio.workspace), "drafts", fails)
    answer = client.get("/")
    assert answer.status == 500
    assert "SECRETVALUE" not in answer.text
    assert "Traceback" not in answer.text
    assert "RuntimeError" in answer.text


def test_web_sockets_are_closed(client: Client) -> None:
    import asyncio

    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    asyncio.run(client.application({"type": "websocket", "headers": []}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_read_only_studio_changes_nothing(folder: Path) -> None:
    client = Client(folder, read_only=True).enter()
    assert client.get("/").status == 200
    for path in ("/demo", "/tables", "/runs/0123456789abcdef/cancel"):
        assert client.post(path).status == 403
    for path in ("/tables", "/ledger", "/ledger/export", "/confidential", "/accounts"):
        assert client.get(path).status == 404
    assert not (folder / ".understudy-studio").exists()


STATEMENTS = ("{", "[]", '{"epsilon": 1' + "0" * 400 + "}", '{"a":' * 100_000, '{"epsilon": NaN, "title": [1]}', "")


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_broken_release_does_not_shut_the_studio(folder: Path, text: str) -> None:
    (folder / "strange").mkdir()
    (folder / "strange" / "statement.json").write_text(text, encoding="utf-8")
    client = Client(folder, read_only=True).enter()
    listed = client.get("/")
    assert listed.status == 200
    assert "strange" in listed.words
    place = f"/releases/{short_id('strange')}"
    assert client.get(place).status == 200
    assert client.get(f"{place}/card").status == 404
    assert client.get(f"{place}/download/csv").status == 409


def test_a_release_shows_nothing_outside_its_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text('{"title": "SECRETVALUE"}', encoding="utf-8")
    (folder / "strange").mkdir()
    for name in ("statement.json", "card.html", "data.parquet"):
        (folder / "strange" / name).symlink_to(tmp_path / "outside.json")
    client = Client(folder, read_only=True).enter()
    place = f"/releases/{short_id('strange')}"
    for path in ("/", place, f"{place}/card", f"{place}/download/zip", f"{place}/download/parquet"):
        assert b"SECRETVALUE" not in client.get(path).body


def test_the_demo_is_not_written_through_a_link(client: Client, folder: Path, tmp_path: Path) -> None:
    (folder / "demo-voters.duckdb").symlink_to(tmp_path / "elsewhere.duckdb")
    answer = client.post("/demo")
    assert (answer.status, "is a link" in answer.words) == (409, True)
    assert not (tmp_path / "elsewhere.duckdb").exists()


def test_a_card_is_no_part_of_the_site(folder: Path) -> None:
    (folder / "strange").mkdir()
    (folder / "strange" / "statement.json").write_text("{}", encoding="utf-8")
    (folder / "strange" / "card.html").write_text("<form action='https://evil.example'>", encoding="utf-8")
    headers = Client(folder).enter().get(f"/releases/{short_id('strange')}/card").headers
    policy = [part.strip() for part in headers["content-security-policy"].split(";")]
    assert {"default-src 'none'", "form-action 'none'", "base-uri 'none'", "sandbox allow-downloads"} <= set(policy)
    assert headers["cross-origin-opener-policy"] == "unsafe-none"


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(hashed("correct horse battery"), encoding="ascii")
    path.chmod(0o600)
    return path


def _login(client: Client, password: str) -> int:
    body = urlencode({"password": password}).encode()
    asked = {"host": "studio.example", "origin": "https://studio.example"}
    answer = client.ask("POST", "/login", body=body, headers=asked)
    if answer.status == 200:
        client.cookie = answer.headers["set-cookie"].partition(";")[0]
        assert "Secure" in answer.headers["set-cookie"]
        assert client.cookie.startswith("__Host-")
    return answer.status


def test_a_password_lets_in_and_a_wrong_one_does_not(folder: Path, password_file: Path) -> None:
    client = Client(folder, password_file=password_file, address="https://studio.example")
    own = {"host": "studio.example"}
    shut = client.get("/", headers=own)
    assert shut.status == 401
    assert 'name="password"' in shut.text, "the door itself, and no page that leads to it"
    assert client.get("/start/", headers=own).status in (401, 404)
    assert _login(client, "wrong") == 403
    assert client.get("/", headers=own).status == 401
    assert _login(client, "correct horse battery") == 200
    assert client.get("/", headers=own).status == 200
    assert client.get("/").status == 421


def test_many_wrong_passwords_shut_the_door(folder: Path, password_file: Path) -> None:
    client = Client(folder, password_file=password_file, address="https://studio.example")
    threads = [threading.Thread(target=_login, args=(client, "wrong")) for _ in range(guard.MOST_FAILURES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _login(client, "correct horse battery") == 403


def test_a_password_file_is_hashed_and_for_its_owner_alone(password_file: Path) -> None:
    assert "correct" not in password_file.read_text(encoding="ascii")
    assert hashed("a") != hashed("a")
    password_file.chmod(0o644)
    with pytest.raises(us.errors.UsageError, match="read by others"):
        read_password(password_file)
    password_file.chmod(0o600)
    password_file.write_text("correct horse battery", encoding="ascii")
    with pytest.raises(us.errors.UsageError, match="hashed"):
        read_password(password_file)


NO_ADDRESSES = (
    "http://studio.example", "studio.example", "ftp://x", "https://x/studio", "", "https://", "https://x:y", "https://a@x",
    "https://x?y", "https://x#y", "https://[x", f"https://{'x' * 80}.example", "http://127.0.0.1.evil.example",
)  # fmt: skip


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_others_are_served_over_tls_alone(address: str) -> None:
    with pytest.raises(us.errors.UsageError, match="address"):
        Doors.behind(address, "x")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://Studio.Agency.example", "studio.agency.example"),
        ("https://studio.example:443/", "studio.example"),
        ("https://studio.example:8443", "studio.example:8443"),
        ("https://büro.example", "xn--bro-hoa.example"),
        ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443"),
        ("http://localhost:80", "localhost"),
        ("http://127.0.0.1:8321", "127.0.0.1:8321"),
    ],
)
def test_an_address_means_the_name_that_browsers_send(address: str, name: str) -> None:
    doors = Doors.behind(address, "x")
    assert doors.names == {name}
    assert {one.partition("://")[2] for one in doors.origins} == {name}


def test_a_session_ends(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/").status == 200
    later = time.monotonic() + guard.SESSION_SECONDS + 1
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert client.get("/").status == 401


def test_usual_requests_pass(client: Client) -> None:
    assert client.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}).status == 200
    assert client.get("/", headers={"host": "localhost:8321"}).status == 200
    assert client.post("/demo", headers={"origin": ORIGIN, "sec-fetch-site": "same-origin"}).status == 303
    assert HOST in client.studio.doors.names
