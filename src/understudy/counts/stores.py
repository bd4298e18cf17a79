"""Stores: the disk of this machine and object stores (S3, Google Cloud Storage, Azure), through Arrow's file systems.

Who is asking is said by the environment alone, in the places that each store's own tools use: `AWS_ACCESS_KEY_ID`,
`AWS_PROFILE` and its files or the role of the machine; `GOOGLE_APPLICATION_CREDENTIALS`; `AZURE_STORAGE_ACCOUNT` with
`AZURE_STORAGE_KEY` or `AZURE_STORAGE_SAS_TOKEN`. A key in a location is
refused, because locations stand in histories, process lists and scripts; the refusal does not repeat it. Nothing that
a store says is shown: only that it could not be reached, and where.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs

from understudy.errors import InputError

MAGIC = re.compile(r"[*?\[]")
PATIENCE = timedelta(seconds=60)  # for Google's client, which would else try again for a quarter of an hour
ASKED = 10  # seconds in which S3 has to take a connection
# A path object squeezes two slashes into one, so one is enough.
_STORED = re.compile(r"([a-z][a-z0-9+.-]*):/+([^/]*)(?:/(.*))?", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"\?[\w.-]+=")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, file or pattern in a store."""

    store: Any
    """Arrow's file system."""
    root: str
    """The path in it up to the first folder or name with a wildcard, with "/" between folders and none at the end."""
    pattern: str
    """What follows, with its wildcards; nothing where the location has none."""
    where: str
    """The root as the user wrote it, for messages."""
    remote: bool
    """Whether every request travels through a network."""


def is_stored(location: str) -> bool:
    """Whether a location names an object store.

    >>> is_stored("s3://bucket/folder"), is_stored("folder/s3"), is_stored("delta:folder")
    (True, False, False)
    """
    found = _STORED.fullmatch(location)
    return found is not None and found[1].lower() in STORES


def place_of(location: str) -> Place:
    """Where a location points to. Of an object store the client is made; nothing is asked yet.

    Raises:
        InputError: the location holds a key, or says no place, or the client is not there.
    """
    stored = _STORED.fullmatch(location) if is_stored(location) else None
    if stored is None:
        head, tail = _split(location)
        return Place(fs.LocalFileSystem(), os.path.abspath(head or "."), tail, head or ".", False)
    scheme, host, path = stored[1].lower(), stored[2], (stored[3] or "")
    _refuse_secrets(scheme, host, path)
    bucket, account = _bucket(scheme, host)
    if not bucket or MAGIC.search(bucket):
        raise InputError(f"{scheme}://", "needs the name of a bucket.", f"Write {scheme}://bucket/folder/*.parquet.")
    head, tail = _split(path)
    where = "/".join(part for part in (f"{scheme}://{host}", head) if part)
    return Place(_client(scheme, bucket, account), f"{bucket}/{head}".rstrip("/"), tail, where, True)


def _split(path: str) -> tuple[str, str]:
    """The part without wildcards, and the rest.

    >>> _split("data/year=*/part.parquet"), _split("data/"), _split("/*.parquet")
    (('data', 'year=*/part.parquet'), ('data', ''), ('/', '*.parquet'))
    """
    parts = path.split("/")
    first = next((place for place, part in enumerate(parts) if MAGIC.search(part)), len(parts))
    head = "/".join(parts[:first])
    rooted = "/" if path.startswith("/") else ""
    return head.rstrip("/") or rooted, "/".join(parts[first:])


def _refuse_secrets(scheme: str, host: str, path: str) -> None:
    name, at, _ = host.rpartition("@")
    azure = scheme in AZURE  # whose locations are container@account
    if (at and not azure) or ":" in name or _QUERY.search(host + "/" + path):
        rule = "must hold no key, password or option: others can see locations."
        fix = "Put keys where the tools of the store look for them, such as AWS_ACCESS_KEY_ID or ~/.aws/credentials."
        raise InputError(f"{scheme} location", rule, fix)


def _bucket(scheme: str, host: str) -> tuple[str, str]:
    """The bucket, and for Azure the account, which the environment tells where the location does not."""
    if scheme not in AZURE:
        return host, ""
    name, at, account = host.rpartition("@")
    container = name if at else account
    return container, account.partition(".")[0] if at else os.environ.get("AZURE_STORAGE_ACCOUNT", "")


def _client(scheme: str, bucket: str, account: str) -> Any:
    try:
        return STORES[scheme](bucket, account)
    except InputError:
        raise
    except ImportError:
        rule = "this build of pyarrow cannot read it."
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
        rule = "its client cannot be created from the settings of the environment."
    raise InputError(f"{scheme}://{bucket}", rule, "docs/engines.md says what is needed.")


def _s3(bucket: str, _: str) -> Any:
    settings: dict[str, Any] = {"connect_timeout": ASKED}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint:
        settings["endpoint_override"] = endpoint
    if region or not endpoint:
        settings["region"] = region or fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(**settings)


def _google(_: str, __: str) -> Any:
    return fs.GcsFileSystem(retry_time_limit=PATIENCE)


def _azure(bucket: str, account: str) -> Any:
    if not account:
        fix = "Write abfss://container@account.dfs.core.windows.net/folder, or set AZURE_STORAGE_ACCOUNT."
        raise InputError(f"az://{bucket}", "needs the name of an account.", fix)
    known = {"account_key": "AZURE_STORAGE_KEY", "sas_token": "AZURE_STORAGE_SAS_TOKEN"}
    keys = {setting: os.environ[name] for setting, name in known.items() if os.environ.get(name)}
    if not keys:
        # Without them Azure's client asks for tokens, and a refusal there ends the whole process.
        fix = "Set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN."
        raise InputError(f"az://{bucket}", "needs a key in the environment.", fix)
    return fs.AzureFileSystem(account, **dict(list(keys.items())[:1]))


AZURE = ("abfs", "abfss", "az")
STORES: Mapping[str, Callable[[str, str], Any]] = {
    "s3": _s3,
    "s3a": _s3,
    "gs": _google,
    "gcs": _google,
    **dict.fromkeys(AZURE, _azure),
}
"""Schemes of object stores with what makes the client."""
