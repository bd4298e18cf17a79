"""Environments of the peers: found in a cache outside the repository, or made there with pip by package name.

Refuses a cache folder inside the repository and a Python that a peer does not run on, and says what to do instead.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LISTED = HERE / "environments.toml"
INSTALL_SECONDS = 1_800
READY = "ready.json"


class EnvironmentUnavailable(Exception):
    """A peer that cannot be run on this machine; the message says why and what would help."""


@dataclass(frozen=True)
class Peer:
    """A peer library: what to install, on which Python, and the adapter of each of its methods."""

    name: str
    packages: tuple[str, ...]
    python: tuple[str, ...]
    methods: Mapping[str, str]
    variables: Mapping[str, str]
    checkouts: Mapping[str, str] = field(default_factory=dict)
    """What is on no package index: repository → the folder in it that goes on the path."""


def peers(listed: Path = LISTED) -> dict[str, Peer]:
    """All peers that are listed, by package name."""
    return {
        name: Peer(
            name=name,
            packages=tuple(entry["packages"]),
            python=tuple(entry["python"]),
            methods=entry["methods"],
            variables=entry.get("variables", {}),
            checkouts=entry.get("checkouts", {}),
        )
        for name, entry in tomllib.loads(listed.read_text(encoding="utf-8")).items()
    }


def checked_out(peer: Peer, given: Mapping[str, Path]) -> list[Path]:
    """The folders of the peer's checkouts that go on the path, as given for each repository."""
    found = []
    for repository, folder in peer.checkouts.items():
        if not (given.get(repository, ROOT) / folder).is_dir() or repository not in given:
            raise EnvironmentUnavailable(
                f"{peer.name} needs a checkout of {repository}, which no package index holds. "
                f"Give one with --checkout {repository}=FOLDER."
            )
        found.append((given[repository] / folder).resolve())
    return found


def cache_folder(given: Path | None = None) -> Path:
    """Where environments are kept: as given, else the user's cache, else the temporary folder."""
    if given is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        writable = Path(home) if os.access(Path(home).parent, os.W_OK) else Path(tempfile.gettempdir())
        given = writable / "understudy-peers"
    folder = given.resolve()
    if folder == ROOT or ROOT in folder.parents:
        raise EnvironmentUnavailable("environments are kept outside the repository; choose another --cache folder")
    return folder


def _version(python: str) -> str | None:
    """ "3.11" and the like, or None where that command does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def python_for(peer: Peer, given: str | None = None) -> str:
    """A Python that the peer runs on: as given, else the one running, else python3.x on the path."""
    tried = [given] if given else [sys.executable, *(f"python{version}" for version in peer.python)]
    for python in tried:
        found = shutil.which(python)
        if found and _version(found) in peer.python:
            return found
    raise EnvironmentUnavailable(
        f"{peer.name} needs Python {' or '.join(peer.python)}; tried {', '.join(tried)}. Give one with --python."
    )


def environment(peer: Peer, cache: Path, python: str | None = None) -> Path:
    """The peer's Python, in an environment that holds exactly the listed packages and what they need."""
    source = python_for(peer, python)
    wanted = {"packages": list(peer.packages), "python": _version(source)}
    key = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:12]
    folder = cache / f"{peer.name}-{key}"
    interpreter = folder / "bin" / "python"
    if (folder / READY).exists():
        return interpreter
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder.with_suffix(".log")
    with log.open("w", encoding="utf-8") as out:
        for command in (
            [source, "-m", "venv", str(folder)],
            [str(interpreter), "-m", "pip", "install", "--disable-pip-version-check", *peer.packages],
        ):
            _run(peer, command, out=out, log=log)
    (folder / READY).write_text(json.dumps(wanted), encoding="utf-8")
    return interpreter


def _run(peer: Peer, command: list[str], *, out: object, log: Path) -> None:
    try:
        code = subprocess.run(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=INSTALL_SECONDS,
            check=False,  # type: ignore[call-overload]
        ).returncode
        ended = f"ended with {code}"
    except subprocess.TimeoutExpired:
        code, ended = 1, f"took more than {INSTALL_SECONDS} s"
    if code:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if "ERROR" in line]
        raise EnvironmentUnavailable(
            f"{peer.name} cannot be installed here: {' '.join(command[1:])} {ended}. "
            f"{' '.join(lines[-3:])} Whole log: {log}. It needs a package index that holds "
            f"{', '.join(peer.packages)} for Python {' or '.join(peer.python)}."
        )
