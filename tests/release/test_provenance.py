"""Signatures: what was changed after signing is named, other keys are told apart, and nothing is signed unseen."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.release.people import copied, relisted
from understudy.errors import ReleaseError, UsageError
from understudy.release.files import FILE_TIME, PACKAGES_FILE, packages_text
from understudy.release.provenance import check_signature, new_key, read_signature, sign_release
from understudy.release.verify import verify_release

pytest.importorskip("cryptography")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    private = tmp_path_factory.mktemp("keys") / "steward.pem"
    return private, new_key(private)


@pytest.fixture(scope="module")
def signed(plain_folder: Path, keys: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(plain_folder, tmp_path_factory.mktemp("signed") / "release")
    sign_release(folder, keys[0])
    return folder


def _found(folder: Path, public: Path) -> dict[str, str]:
    return {problem.where: problem.rule for problem in check_signature(folder, public)}


def test_a_signed_folder_is_whole_and_signed(signed: Path, keys: tuple[Path, Path]) -> None:
    assert verify_release(signed) == []
    assert check_signature(signed, keys[1]) == []
    assert set(read_signature(signed).files) >= {"manifest.json", "data.parquet", "statement.json", PACKAGES_FILE}
    assert (signed / "signature.json").stat().st_mtime == FILE_TIME


def test_keys_are_made_for_their_owner_alone_and_never_overwritten(keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert public.name == "steward.public.pem"
    assert "PRIVATE" not in public.read_text(encoding="ascii")
    with pytest.raises(UsageError, match="never overwritten"):
        new_key(private)


def test_what_was_done_after_signing_is_named(signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    """Also by somebody who writes a manifest that fits."""
    folder = copied(signed, tmp_path / "release")
    (folder / "data.parquet").write_bytes((folder / "data.parquet").read_bytes() + b"x")
    (folder / "statement.md").unlink()
    (folder / "more.txt").write_text("x", encoding="utf-8")
    relisted(folder)
    assert _found(folder, keys[1]) == {
        "data.parquet": "was changed after the release was signed.",
        "manifest.json": "was changed after the release was signed.",
        "more.txt": "was added after the release was signed.",
        "statement.md": "is signed but missing.",
    }


def test_a_signed_folder_that_was_blown_up_is_not_read_to_its_end(
    signed: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = copied(signed, tmp_path / "release")
    os.truncate(folder / "data.parquet", 2**42)
    assert "too much to compare" in _found(folder, keys[1])["data.parquet"]
    shown = run("verify", folder, "--key", keys[1])
    assert shown.status == 2
    assert "--everything" in shown.words


def test_other_keys_and_forged_signatures(signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    other = new_key(tmp_path / "other.pem")
    assert "another key" in _found(signed, other)["signature.json"]
    folder = copied(signed, tmp_path / "release")
    document = json.loads((folder / "signature.json").read_text(encoding="ascii"))
    document["files"]["data.parquet"] = "0" * 64
    (folder / "signature.json").write_text(json.dumps(document), encoding="ascii")
    assert "forged" in _found(folder, keys[1])["signature.json"]


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"format": 1}', "\x00", '{"format":"understudy signature, format 9"}', "9" * 10_000]
)
def test_what_is_no_signature_is_a_finding(text: str, signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    folder = copied(signed, tmp_path / "release")
    (folder / "signature.json").write_text(text, encoding="utf-8")
    assert [problem.where for problem in verify_release(folder)] == ["signature.json"]
    assert list(_found(folder, keys[1])) == ["signature.json"]


def test_signature_file_may_hold_nothing_else(signed: Path, tmp_path: Path) -> None:
    folder = copied(signed, tmp_path / "release")
    document = json.loads((folder / "signature.json").read_text(encoding="ascii")) | {"note": "a message"}
    (folder / "signature.json").write_text(json.dumps(document), encoding="ascii")
    assert [problem.where for problem in verify_release(folder)] == ["signature.json"]


def test_only_whole_folders_are_signed_and_only_once(
    signed: Path, plain_folder: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="signed already"):
        sign_release(signed, keys[0])
    broken = copied(plain_folder, tmp_path / "release")
    (broken / "card.html").write_text("<p>", encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"card\.html"):
        sign_release(broken, keys[0])
    assert not (broken / "signature.json").exists()
    assert "is missing" in _found(plain_folder, keys[1])["signature.json"]


def test_keys_that_cannot_be_used(keys: tuple[Path, Path], plain_folder: Path, tmp_path: Path) -> None:
    folder = copied(plain_folder, tmp_path / "release")
    with pytest.raises(UsageError, match="no private key"):
        sign_release(folder, keys[1])
    with pytest.raises(UsageError, match="no public key"):
        check_signature(folder, keys[0])
    with pytest.raises(UsageError, match="cannot be read"):
        sign_release(folder, tmp_path / "none.pem")
    with pytest.raises(UsageError, match="release"):
        new_key(folder / "key.pem")


def test_without_the_package_the_message_names_the_extra(plain_folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from pathlib import Path\nfrom understudy.release.provenance import new_key\n"
        f"try: new_key(Path({str(tmp_path / 'key.pem')!r}))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "UsageError" in done.stdout
    assert "understudy[sign]" in done.stdout


def test_the_commands(plain_folder: Path, tmp_path: Path) -> None:
    folder, key = copied(plain_folder, tmp_path / "release"), tmp_path / "key.pem"
    assert run("sign", folder).status == 2
    assert not key.exists(), "no key is made unless it is asked for"
    assert run("sign", folder, "--new-key", key).status == 2
    assert run("sign", "--new-key", key).status == 0
    shown = run("sign", folder, "--key", key)
    assert shown.status == 0, shown.err
    assert "check that with --key" in run("verify", folder).words
    shown = run("verify", folder, "--key", tmp_path / "key.public.pem")
    assert shown.status == 0, shown.err
    assert "Signed by the key with fingerprint" in shown.words
    (folder / "signature.json").unlink()
    assert run("verify", folder).status == 0
    shown = run("verify", folder, "--key", tmp_path / "key.public.pem")
    assert shown.status == 2
    assert "not signed" in shown.words


def test_the_bill_of_materials_names_what_is_installed(plain_folder: Path) -> None:
    document = json.loads((plain_folder / PACKAGES_FILE).read_text(encoding="ascii"))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    listed = {part["name"]: part["version"] for part in document["components"]}
    assert {"numpy", "pyarrow", "duckdb", "scipy", "click"} & set(listed) >= {"numpy", "pyarrow", "duckdb", "scipy"}
    assert document["metadata"]["component"]["name"] == "understudy"
    assert packages_text() == (plain_folder / PACKAGES_FILE).read_text(encoding="ascii")


@pytest.mark.parametrize("text", ["[]", '{"bomFormat": "CycloneDX"}', "not json"])
def test_what_is_no_bill_of_materials_is_a_finding(text: str, plain_folder: Path, tmp_path: Path) -> None:
    folder = copied(plain_folder, tmp_path / "release")
    (folder / PACKAGES_FILE).write_text(text, encoding="ascii")
    assert [problem.where for problem in verify_release(relisted(folder))] == [PACKAGES_FILE]
    (folder / PACKAGES_FILE).unlink()
    assert verify_release(relisted(folder)) == [], "folders of earlier versions have none"
