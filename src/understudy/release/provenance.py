"""The signature of whoever published a release: Ed25519 over the digest of every file.

`verify` finds that a folder agrees with itself; whoever rewrites every file can make another one that does. A signature
says in addition that the holder of a key saw this very folder. It is one file in the folder, `signature.json`: its
format, the fingerprint of the key, the SHA-256 of every other file (the manifest among them), and the signature over
all of that. So a file that was changed, added or removed is named, also if the manifest was rewritten to hide it.

Signed are the bytes of the document without its signature, as canonical JSON (sorted keys, ASCII, no spaces), after a
line that says what is signed, so that no signature made for something else can be passed off as one of a release.

A signature says nothing about privacy: a folder is signed only if `verify` finds nothing wrong, and that is all. No key
is made unless it is asked for, and none is ever written into a release. Keys are PEM files as `openssl` writes them.
Needs the extra `sign` (the package cryptography), because signatures are no place for code of our own.
"""

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from understudy.errors import Problem, ReleaseError, UsageError, size_text
from understudy.models.model import open_plain, read_json
from understudy.release.files import (
    FILE_BYTES,
    FILE_TIME,
    MOST_LISTED_FILE_BYTES,
    SIGNATURE,
    refuse_release_folder,
    stream_digest,
    walk,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from understudy.release.verify import Replan

FORMAT = "understudy signature, format 1"
ALGORITHM = "ed25519"
_CONTEXT = b"signature of an understudy release\n"
_MOST_KEY_BYTES = 2**16
_HEX = 64
_EVERYTHING = "Give everything=True, however long that takes."
_FIX = "Get the folder from its publisher again."


@dataclass(frozen=True, slots=True)
class Signature:
    """Whose key signed which files."""

    key: str
    files: Mapping[str, str]
    signature: bytes

    @property
    def signed(self) -> bytes:
        """The bytes that the signature covers."""
        document = {"format": FORMAT, "algorithm": ALGORITHM, "key": self.key, "files": dict(self.files)}
        return _CONTEXT + json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()

    def document(self) -> dict[str, object]:
        """What the file holds."""
        text = base64.b64encode(self.signature).decode("ascii")
        return {
            "format": FORMAT, "algorithm": ALGORITHM, "key": self.key, "files": dict(self.files), "signature": text,
        }  # fmt: skip


def new_key(place: Path) -> Path:
    """Writes a new private key, readable by its owner alone, and the public one beside it; returns the latter's path.

    Raises:
        UsageError: if either file exists, or the place lies in a release.
    """
    serialization, ed25519 = _cryptography()
    public_place = place.with_name(f"{place.stem}.public.pem")
    for path in (place, public_place):
        refuse_release_folder(path)
        if path.exists() or path.is_symlink():
            raise UsageError("new key", f"{str(path)!r} exists and is never overwritten.", "Choose another name.")
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write_new(place, private, 0o600)
    _write_new(public_place, public, 0o644)
    return public_place


def sign_release(folder: Path, key: Path, replan: "Replan | None" = None) -> str:
    """Signs every file of a release folder and returns the fingerprint of the key; `replan` is for `verify`.

    Raises:
        ReleaseError: if `verify` finds anything wrong with the folder.
        UsageError: if it is signed already, or the key cannot be used.
    """
    from understudy.release.verify import inspect_release

    private = _private_key(key)
    if (folder / SIGNATURE).exists() or (folder / SIGNATURE).is_symlink():
        fix = f"Delete {SIGNATURE} in it to sign it anew."
        raise UsageError("sign", f"release {str(folder)!r} is signed already.", fix)
    problems = inspect_release(folder, everything=True, replan=replan).problems
    if problems:
        raise ReleaseError(problems)
    unsigned = Signature(_fingerprint(private.public_key()), _digests(folder), b"")
    whole = Signature(unsigned.key, unsigned.files, private.sign(unsigned.signed))
    text = json.dumps(whole.document(), indent=1, sort_keys=True, ensure_ascii=True) + "\n"
    _write_new(folder / SIGNATURE, text.encode("ascii"), 0o644)
    for path in (folder / SIGNATURE, folder):
        os.utime(path, (FILE_TIME, FILE_TIME))
    return whole.key


def read_signature(folder: Path) -> Signature:
    """The signature in a release folder; raises ReleaseError if there is none, or it does not have its form."""
    if not (folder / SIGNATURE).exists():
        raise ReleaseError([Problem(SIGNATURE, "is missing: the release is not signed.", _FIX)])
    document = read_json(folder / SIGNATURE)
    keys = {"format", "algorithm", "key", "files", "signature"}
    try:
        if not isinstance(document, Mapping) or set(document) != keys:
            raise ValueError("keys")
        if (document["format"], document["algorithm"]) != (FORMAT, ALGORITHM):
            raise ValueError("format")
        files = {str(name): _hex(digest) for name, digest in document["files"].items()}
        return Signature(_hex(document["key"]), files, base64.b64decode(document["signature"], validate=True))
    except (ValueError, TypeError, AttributeError, binascii.Error) as error:
        rule = "does not have the form of a signature of this version."
        raise ReleaseError([Problem(SIGNATURE, rule, _FIX)]) from error


def check_signature(folder: Path, key: Path, *, everything: bool = False) -> list[Problem]:
    """Findings about the signature of a folder, by the public key of whoever is said to have signed it.

    Files that are too large to be read in a minute are read where everything is asked for, and a finding otherwise.
    """
    public = _public_key(key)
    try:
        found = read_signature(folder)
    except ReleaseError as error:
        return list(error.problems)
    if found.key != _fingerprint(public):
        rule = f"was made with another key, of fingerprint {found.key}."
        return [Problem(SIGNATURE, rule, "Ask the publisher for the key, by another channel than that of the folder.")]
    if not _is_signed_by(found, public):
        return [Problem(SIGNATURE, "was altered or forged: it does not match the key.", _FIX)]
    try:
        now = _digests(folder, MOST_LISTED_FILE_BYTES if everything else FILE_BYTES)
    except ReleaseError as error:
        return list(error.problems)
    names = sorted({*now, *found.files})
    rules = {
        name: "is signed but missing." if name not in now
        else "was added after the release was signed." if name not in found.files
        else "was changed after the release was signed."
        for name in names
        if now.get(name) != found.files.get(name)
    }  # fmt: skip
    return [Problem(name.encode("unicode_escape").decode("ascii"), rule, _FIX) for name, rule in rules.items()]


def _is_signed_by(found: Signature, public: "Ed25519PublicKey") -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(found.signature, found.signed)
    except InvalidSignature:
        return False
    return True


def _digests(folder: Path, most_bytes: int = MOST_LISTED_FILE_BYTES) -> dict[str, str]:
    """SHA-256 of every plain file below the folder but the signature; of at most so many bytes in all."""
    names, strange = walk(folder)
    if strange:
        raise ReleaseError(strange)
    found = {}
    for name in names:
        if name != SIGNATURE:
            with open_plain(folder / name, MOST_LISTED_FILE_BYTES) as source:
                most_bytes -= os.fstat(source.fileno()).st_size
                if most_bytes < 0:
                    rule = f"leads to more than {size_text(FILE_BYTES)}, too much to compare with the signature."
                    raise ReleaseError([Problem(name.encode("unicode_escape").decode("ascii"), rule, _EVERYTHING)])
                found[name] = stream_digest(source)
    return found


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        rule = "needs the package cryptography, which is not installed."
        raise UsageError("sign", rule, "Install understudy[sign].") from error
    return serialization, ed25519


def _unsupported() -> type[Exception]:
    """What a key of a kind that the package does not know raises."""
    from cryptography.exceptions import UnsupportedAlgorithm

    return UnsupportedAlgorithm


def _private_key(place: Path) -> "Ed25519PrivateKey":
    serialization, ed25519 = _cryptography()
    content = _key_bytes(place)
    try:
        key = serialization.load_pem_private_key(content, None)
    except TypeError as error:
        fix = "Unlock it into a file of your own with `openssl pkey -in KEY -out OTHER`."
        raise UsageError("key", f"{str(place)!r} is locked by a passphrase.", fix) from error
    except (ValueError, _unsupported()) as error:
        rule = f"{str(place)!r} holds no private key in PEM form."
        raise UsageError("key", rule, "Make one with new_key=FILE.") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise UsageError("key", f"{str(place)!r} is not an Ed25519 key.", "Make one with new_key=FILE.")
    return cast("Ed25519PrivateKey", key)


def _public_key(place: Path) -> "Ed25519PublicKey":
    serialization, ed25519 = _cryptography()
    content = _key_bytes(place)
    try:
        key = serialization.load_pem_public_key(content)
    except (ValueError, _unsupported()) as error:
        fix = "Ask the publisher for the public key; a private one must not be given away."
        raise UsageError("key", f"{str(place)!r} holds no public key in PEM form.", fix) from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise UsageError("key", f"{str(place)!r} is not an Ed25519 key.", "Ask the publisher for the right one.")
    return cast("Ed25519PublicKey", key)


def _key_bytes(place: Path) -> bytes:
    try:
        with place.open("rb") as source:
            return source.read(_MOST_KEY_BYTES)
    except OSError as error:
        raise UsageError("key", f"{str(place)!r} cannot be read.", "Name a PEM file.") from error


def _fingerprint(public: "Ed25519PublicKey") -> str:
    """SHA-256 of the public key as `openssl pkey -pubin -outform DER` writes it."""
    serialization, _ = _cryptography()
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _hex(value: object) -> str:
    if not isinstance(value, str) or len(value) != _HEX or set(value) - set("0123456789abcdef"):
        raise ValueError("digest")
    return value


def _write_new(place: Path, content: bytes, mode: int) -> None:
    """Writes a file that must not exist; nothing is left if that fails."""
    try:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except OSError as error:
        raise UsageError("sign", f"{str(place)!r} cannot be written.", "Choose another place.") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        place.unlink(missing_ok=True)
        raise
