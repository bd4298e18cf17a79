"""`understudy sign`: say who published a release, with an Ed25519 key; `verify --key` checks it."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import Json
from understudy.errors import UsageError


def sign(
    release: Annotated[Path | None, typer.Argument(metavar="[RELEASE]", help="The release folder to sign.")] = None,
    *,
    key: Annotated[Path | None, typer.Option("--key", help="Your private key, a PEM file.")] = None,
    new_key: Annotated[
        Path | None,
        typer.Option("--new-key", metavar="FILE", help="Make a key instead: FILE, and its public part beside it."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Signs every file of a release with your key, so that readers can tell that it is yours and unaltered.

    No key is ever made unless --new-key asks for one.
    """
    with shell("sign", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.release.files import SIGNATURE
        from understudy.release.signing import new_key as make_key
        from understudy.release.signing import sign_release

        if new_key is not None:
            if release is not None or key is not None:
                raise UsageError("--new-key", "makes a key and signs nothing.", "Sign with it in a second command.")
            public = make_key(new_key)
            place.json({"release": None, "signature": None, "key": str(new_key), "public_key": str(public)})
            place.line(f"Wrote the private key {new_key} and the public key {public}.")
            place.note("Keep the private key to yourself, with a copy in a safe place; publish the public one.")
            return
        if release is None or key is None:
            raise UsageError("sign", "needs a release folder and --key.", "Make a key with --new-key if you have none.")
        fingerprint = sign_release(release, key)
        signature = str(release / SIGNATURE)
        place.json({"release": str(release), "signature": signature, "key": fingerprint, "public_key": None})
        place.line(f"Signed {release} with the key of fingerprint {fingerprint}.")
        place.note("Publish the fingerprint or the public key by another way than the folder.")
