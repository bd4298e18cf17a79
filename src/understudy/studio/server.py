"""Starting the studio: the doors, the pages behind them, and a server on one port of this machine.

Without further words it listens on 127.0.0.1 and lets in whoever opens the address that it prints, once. To serve
others it needs a password file and the address under which a proxy that speaks TLS is reached (`Doors.behind`). It
writes no log of requests.
"""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import understudy as us
from understudy.studio.guard import Application, Doors, Guard, RefusedRequest, read_password

LOCAL = "127.0.0.1"
_ROUTER = {404: "There is no page of this name.", 405: "This cannot be done here."}


def application(studio: Any) -> Application:
    """The pages of a studio behind its doors."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    from understudy.studio import confirming, pages, shown, trials

    found = shown.routes_of(studio)
    own = [*pages.routes_of(studio), *confirming.routes_of(studio), *trials.routes_of(studio)]
    if studio.doors.read_only:
        own = [one for one in own if one[0] in ("/start/{token}", "/login")]
    routes = [Route(place, page, methods=list(methods)) for place, page, methods in (*found, *own)]

    async def refused(_: Any, error: Exception) -> Any:
        """Every refusal and failure in the studio's own words; those of a fault are told to nobody."""
        if isinstance(error, RefusedRequest):
            status, text = error.status, error.text
        elif isinstance(error, HTTPException):
            status, text = error.status_code, _ROUTER.get(error.status_code, "This failed.")
        else:
            status, text = 500, f"Something went wrong in the studio itself ({type(error).__name__})."
        return HTMLResponse(studio.refusal(status, text), status)

    handlers: dict[Any, Callable[[Any, Exception], Any]] = dict.fromkeys(
        (HTTPException, RefusedRequest, Exception), refused
    )
    inside: Any = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(inside, studio.doors, studio.refusal)


def studio_of(
    folder: Path,
    port: int,
    *,
    ledger: Path | None = None,
    read_only: bool = False,
    password_file: Path | None = None,
    address: str = "",
) -> Any:
    """The studio of a folder with its doors, not started yet.

    Raises:
        UsageError: if the folder, what is kept in it, the password file or the address cannot be used.
    """
    from understudy.studio.pages import Studio
    from understudy.studio.workspace import Workspace

    workspace = Workspace(folder, ledger)
    if not read_only:
        _ = workspace.kept  # one that cannot be used is told before anybody is let in
    if password_file is None:
        doors = Doors.local(port, read_only=read_only)
    else:
        doors = Doors.behind(address or f"http://{LOCAL}:{port}", read_password(password_file), read_only=read_only)
    return Studio.of(workspace, doors)


def listening(host: str, port: int) -> socket.socket:
    """The port, taken before anything is promised; 0 takes any free one.

    Raises:
        UsageError: if it cannot be had.
    """
    taken = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(128)  # whoever opens the address at once waits until somebody answers
    except OSError as error:
        taken.close()
        raise us.errors.UsageError("port", f"{port} cannot be used on this machine.", "Choose another one.") from error
    return taken


def serve(studio: Any, taken: socket.socket) -> None:
    """Answers requests until it is told to end. Runs that were begun go on."""
    import uvicorn

    config = uvicorn.Config(
        application(studio), access_log=False, log_config=None, server_header=False, lifespan="off",
        proxy_headers=False, h11_max_incomplete_event_size=1 << 16, timeout_keep_alive=30, limit_concurrency=200,
        http="h11", ws="none", timeout_graceful_shutdown=2,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[taken])
