"""What keeps strangers and other web pages out: every request passes here before any page sees it.

Who may attack a page that a program on the own machine serves? Other web pages in the same browser (forged requests,
names that are made to point to this machine, frames), other people on the same machine or network, and whoever writes a
text that is shown: a column name, a label. Hence, in this order:

1. `Host` must be a name that we go by. A foreign name that points here (DNS rebinding) is turned away.
2. Only GET, HEAD and POST; addresses of usual length; no web sockets.
3. A request that the browser itself says comes from another site is turned away, unless a person follows a link.
4. A POST must say where it comes from (`Origin`), and that must be us.
5. Without a session only the sign-in page is shown. A session is begun with the token that the start of the program
   prints, which works once, or with the password. Its cookie is kept from scripts and from requests of other sites.
6. A POST carries a form, no larger than a schema may be, and in it the secret of its session (CSRF).
7. Every answer forbids the browser to run, load, frame or send anything that is not ours (content security policy), to
   keep it, and to tell its address to others.
8. Whatever goes wrong inside, the answer holds the kind of the error and none of its words.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import understudy as us

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_FORM_BYTES = 2 << 20
MOST_ADDRESS = 2048
MOST_FIELDS = 2000
MOST_SESSIONS = 100
SESSION_SECONDS = 12 * 3600.0
MOST_FAILURES, FAILURE_SECONDS = 5, 60.0
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'none'"
)
"""Policy of a report, which carries its style in itself and has no scripts or forms."""
CARD_HEADERS = {
    "content-security-policy": f"{REPORT_POLICY}; sandbox allow-downloads",
    "cross-origin-opener-policy": "unsafe-none",
}
"""Of a card, which comes with a release and may be a stranger's: it is no part of the studio's site, and cannot send a
form or lead elsewhere by itself. Its numbers, which lie in it, can be saved. HTML makes a page that is kept apart so an
error if it has an opener policy too."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with none at all, browsers hide from us that our own forms are ours
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = ("/static/", "/start/", "/login")
"""What is answered without a session: styles, and the two doors."""
_SCRYPT = {"n": 1 << 15, "r": 8, "p": 1}
_SCRYPT_BYTES = 128 << 20


def hashed(password: str) -> str:
    """The line of a password file: scrypt with a salt of its own."""
    salt = secrets.token_hex(16)
    return f"scrypt:{salt}:{_scrypt(password, salt)}"


def _scrypt(password: str, salt: str) -> str:
    return hashlib.scrypt(
        password.encode(), salt=salt.encode(), n=_SCRYPT["n"], r=_SCRYPT["r"], p=_SCRYPT["p"], maxmem=_SCRYPT_BYTES
    ).hex()


def read_password(path: Path) -> str:
    """The line of a password file.

    Raises:
        UsageError: if it cannot be read, is open to others, or is no such file.
    """
    where = "password file"
    try:
        text, mode = path.read_text(encoding="ascii").strip(), path.stat().st_mode
    except (OSError, ValueError) as error:
        raise us.errors.UsageError(where, "cannot be read.", "Check the path.") from error
    if mode & 0o077:
        raise us.errors.UsageError(where, "can be read by others.", "Remove their permissions: chmod 600.")
    parts = text.split(":")
    if len(parts) != 3 or parts[0] != "scrypt" or len(parts[2]) != 128:
        raise us.errors.UsageError(where, "does not hold a hashed password.", "Make one with `understudy studio`.")
    return text


@dataclass(frozen=True, slots=True)
class StudioSession:
    """One browser that was let in: the secret that its forms carry, and until when."""

    csrf: str
    until: float


@dataclass(eq=False)
class Doors:
    """Who is let in: the names we go by, the token that works once, the password, the sessions."""

    names: frozenset[str]
    """Values of `Host` that mean us."""
    origins: frozenset[str]
    secure: bool = False
    """Whether the cookie is for TLS only."""
    password: str = ""
    read_only: bool = False
    token: str = field(default_factory=lambda: secrets.token_hex(32))
    cookie: str = "understudy"
    _sessions: dict[str, StudioSession] = field(default_factory=dict)
    _failures: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def local(cls, port: int, *, read_only: bool = False) -> "Doors":
        """Those of this machine alone."""
        names = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
        origins = frozenset(f"http://{name}" for name in names)
        return cls(names, origins, read_only=read_only, cookie=f"understudy-{port}")

    @classmethod
    def behind(cls, address: str, password: str, *, read_only: bool = False) -> "Doors":
        """Those of a server that others reach under this address, by a proxy that speaks TLS."""
        secure, name = _named_by(address)
        if not secure and name.partition(":")[0] not in ("127.0.0.1", "localhost"):
            rule = "must begin with https: passwords and sessions would cross the network for anybody to read."
            raise us.errors.UsageError("address", rule, "Let the proxy speak TLS.")
        origin = f"{'https' if secure else 'http'}://{name}"
        # By this prefix browsers refuse a cookie that a neighbouring site set for the whole domain.
        cookie = "__Host-understudy" if secure else "understudy"
        return cls(frozenset({name}), frozenset({origin}), secure, password, read_only, token="", cookie=cookie)

    def enter_by_token(self, token: str) -> str | None:
        """The cookie of a new session, if that is the token and nobody used it before."""
        with self._lock:
            if not self.token or not hmac.compare_digest(token.encode(), self.token.encode()):
                return None
            self.token = ""
            return self._begun()

    def enter_by_password(self, password: str) -> str | None:
        """The cookie of a new session, if that is the password; None also where too many wrong ones came lately."""
        now = time.monotonic()
        with self._lock:
            self._failures = [moment for moment in self._failures if now - moment < FAILURE_SECONDS]
            if not self.password or len(self._failures) >= MOST_FAILURES:
                return None
            self._failures.append(now)  # before the slow part, so that many at once do not pass together
        _, salt, digest = self.password.split(":")
        if not hmac.compare_digest(_scrypt(password, salt), digest):
            return None
        with self._lock:
            self._failures.clear()
            return self._begun()

    def _begun(self) -> str:
        key = secrets.token_hex(32)
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[_digest(key)] = StudioSession(secrets.token_hex(32), time.monotonic() + SESSION_SECONDS)
        secure = "; Secure" if self.secure else ""
        return f"{self.cookie}={key}; Path=/; HttpOnly; SameSite=Strict{secure}"

    def session(self, cookies: str) -> StudioSession | None:
        """The session that a request's cookies name, while it lasts."""
        for part in cookies.split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.cookie:
                found = self._sessions.get(_digest(value))
                return found if found is not None and found.until > time.monotonic() else None
        return None


def _named_by(address: str) -> tuple[bool, str]:
    """Whether an address is for TLS, and the `Host` that browsers send for it: in ASCII, small, without a usual port.

    >>> _named_by("https://Studio.Ämter.example:443/")
    (True, 'studio.xn--mter-koa.example')
    """
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except ValueError:  # UnicodeError is one
        host, parts, port = "", urlsplit(""), None
    plain = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in ("http", "https") or not host or not plain:
        raise us.errors.UsageError(
            "address", "must be like https://studio.agency.example.", "Give the address at which the proxy is reached."
        )
    name = f"[{host}]" if ":" in host else host
    usual = port is None or (parts.scheme, port) in (("http", 80), ("https", 443))
    return parts.scheme == "https", name if usual else f"{name}:{port}"


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class RefusedRequest(Exception):
    """A request that no page gets to see: its status, and what to tell."""

    def __init__(self, status: int, text: str) -> None:
        self.status, self.text = status, text
        super().__init__(text)


NO_SESSION = (
    "Open the studio with the address that was printed when it was started. That address works once. If it was used"
    " already, stop the studio and start it again: it prints a new one. Drafts are kept, and runs go on."
)


class Guard:
    """The application behind its doors."""

    def __init__(self, inside: Application, doors: Doors, refusal: Callable[[int, str], bytes]) -> None:
        """Lets requests through to `inside`; `refusal` makes the page of a refusal."""
        self.inside, self.doors, self.refusal = inside, doors, refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] == "lifespan":
            await self.inside(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def sending(message: dict[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = message | {"headers": _with_headers(message.get("headers", ()))}
            await send(message)

        try:
            scope["studio.form"] = await self._checked(scope, receive)
            await self.inside(scope, receive, sending)
        except RefusedRequest as refused:
            await self._refuse(sending, refused.status, refused.text)
        except Exception as error:  # noqa: BLE001 - its words may hold anything, so nobody gets to see them
            if not begun:
                fault = (
                    f"Something went wrong in the studio itself ({type(error).__name__}). No further details are known."
                )
                await self._refuse(sending, 500, fault)

    async def _refuse(self, send: Send, status: int, text: str) -> None:
        page = self.refusal(status, text)
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(page)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": page})

    async def _checked(self, scope: Scope, receive: Receive) -> Mapping[str, str]:
        """The form of a request that may pass, empty for one that only looks; sets the session of the scope."""
        headers = _unique(scope["headers"])
        if headers.get("host", "") not in self.doors.names:
            raise RefusedRequest(421, "This is not an address of the studio. Open the address that it printed.")
        method, path = scope["method"], scope["path"]
        if method not in ("GET", "HEAD", "POST"):
            raise RefusedRequest(405, "This cannot be done here.")
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string", b"")) > MOST_ADDRESS:
            raise RefusedRequest(414, "This address is too long.")
        self._check_site(method, headers)
        scope["studio.session"] = session = self.doors.session(headers.get("cookie", ""))
        if session is None and not path.startswith(OPEN):
            raise RefusedRequest(401, "Log in first." if self.doors.password else NO_SESSION)
        if method != "POST":
            return {}
        if self.doors.read_only and path != "/login":
            raise RefusedRequest(403, "This studio only shows releases; nothing can be changed in it.")
        form = await _form(headers, receive)
        if path != "/login" and (
            session is None or not hmac.compare_digest(form.get("csrf", "").encode(), session.csrf.encode())
        ):
            raise RefusedRequest(403, "This form is from another session. Go back, reload the page and try again.")
        return form

    def _check_site(self, method: str, headers: Mapping[str, str]) -> None:
        site = headers.get("sec-fetch-site", "none")
        following = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not following:
            raise RefusedRequest(403, "This request comes from another page.")
        origin = headers.get("origin")
        if (method == "POST" or origin is not None) and origin not in self.doors.origins:
            raise RefusedRequest(403, "This request does not come from the studio's own pages.")


def _unique(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; one that decides and comes twice is refused, since readers differ in which one they believe."""
    found: dict[str, str] = {}
    for name, value in headers:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "cookie", "content-type", "content-length"):
            raise RefusedRequest(400, "This request contradicts itself.")
        found[key] = value.decode("latin-1")
    return found


async def _form(headers: Mapping[str, str], receive: Receive) -> dict[str, str]:
    """The fields of a form, read no further than it may be long."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise RefusedRequest(415, "Only the studio's own forms are understood here.")
    too_large = RefusedRequest(413, "This form is too large.")
    stated = headers.get("content-length", "0")
    if not stated.isdecimal() or len(stated) > 12 or int(stated) > MOST_FORM_BYTES:
        raise too_large
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedRequest(400, "The form did not arrive in full.")
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > MOST_FORM_BYTES:
            raise too_large
    try:
        text = b"".join(parts).decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError as error:
        raise RefusedRequest(400, "This form cannot be read.") from error
    form = dict(pairs)
    if len(form) != len(pairs):
        raise RefusedRequest(400, "This form gives one of its fields twice.")
    return form


def _with_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    held = list(headers)
    known = {name.lower() for name, _ in held}
    return held + [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in known]
