"""Saving and loading any kind of model, and what is refused of a folder that was altered."""

import json
from pathlib import Path

import numpy as np
import pytest

from understudy.domain import Clique, Domain
from understudy.errors import ReleaseError, UsageError
from understudy.models.model import load_model, register, save_model
from understudy.models.product import Block, BlockModel

ABC = Domain.of({"a": 2, "größe \n": 3})


def model():
    blocks = (
        Block.of(Clique(("a",)), np.arange(2), np.array([0.1, 0.9])),
        Block.of(Clique(("größe \n",)), np.array([0, 2]), np.array([1 / 3, 2 / 3])),
    )
    return BlockModel(ABC, blocks, 12.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(model(), tmp_path / "model")
    return tmp_path / "model"


def test_round_trip_is_exact(folder):
    loaded, saved = load_model(folder), model()
    assert isinstance(loaded, BlockModel)
    assert loaded.domain == saved.domain
    assert loaded.total == saved.total
    for left, right in zip(loaded.blocks, saved.blocks, strict=True):
        assert left.clique == right.clique
        np.testing.assert_array_equal(left.indices, right.indices)
        np.testing.assert_array_equal(left.probabilities, right.probabilities)
    drawn = [each.draw(100, np.random.default_rng(4)) for each in (loaded, saved)]
    assert all(np.array_equal(drawn[0][name], drawn[1][name]) for name in ABC.columns)


def test_the_folder_holds_fixed_names_and_no_pickle(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["indices.npy", "model.json", "probabilities.npy"]
    for name in ("indices.npy", "probabilities.npy"):
        assert np.load(folder / name, allow_pickle=False).shape == (4,)


def test_saving_needs_an_empty_folder(folder):
    with pytest.raises(UsageError, match="empty"):
        save_model(model(), folder)


def test_a_kind_cannot_be_taken_over():
    class Impostor(BlockModel):
        __slots__ = ()

    with pytest.raises(UsageError, match="taken"):
        register(Impostor)
    register(BlockModel)


def edit(**changes):
    def apply(folder):
        path = folder / "model.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")

    return apply


def text(content):
    return lambda folder: (folder / "model.json").write_bytes(content)


def array(name, values):
    return lambda folder: np.save(folder / f"{name}.npy", np.array(values), allow_pickle=True)


def block(columns=("a",), cells=2):
    return edit(blocks=[{"columns": list(columns), "cells": cells}, {"columns": ["größe \n"], "cells": 2}])


def linked(folder):
    (folder / "indices.npy").rename(folder.parent / "elsewhere.npy")
    (folder / "indices.npy").symlink_to(folder.parent / "elsewhere.npy")


def shortened(folder):
    content = (folder / "indices.npy").read_bytes()
    (folder / "indices.npy").write_bytes(content[:-8])


def folder_instead(folder):
    (folder / "indices.npy").unlink()
    (folder / "indices.npy").mkdir()


def extra_key_twice(folder):
    path = folder / "model.json"
    path.write_text(path.read_text("utf-8").replace('"kind"', '"total": 1, "kind"'), "utf-8")


MALFORMED = {
    "not json": text(b"{"),
    "not utf-8": text(b"\xff\xfe{}"),
    "not an object": text(b"[]"),
    "deep": text(b"[" * 200_000),
    "huge number": text(
        b'{"format": "understudy model", "version": 1, "kind": "blocks", "total": ' + b"9" * 5000 + b"}"
    ),
    "key twice": extra_key_twice,
    "other format": edit(format="x"),
    "other version": edit(version=2),
    "unknown kind": edit(kind="pickle"),
    "kind not text": edit(kind=["blocks"]),
    "no domain": edit(domain=[]),
    "column twice": edit(domain=[["a", 2], ["a", 3]]),
    "size zero": edit(domain=[["a", 0], ["größe \n", 3]]),
    "size true": edit(domain=[["a", True], ["größe \n", 3]]),
    "domain of huge columns": edit(domain=[["a", 2**40], ["größe \n", 3]]),
    "total text": edit(total="many"),
    "total negative": edit(total=-1),
    "total not finite": text(b'{"format": "understudy model", "version": 1, "kind": "blocks", "total": NaN}'),
    "total beyond floats": edit(total=10**400),
    "blocks not a list": edit(blocks={}),
    "too many blocks": edit(blocks=[{"columns": ["a"], "cells": 1}] * 9),
    "unknown column": block(["z"]),
    "column in two blocks": block(["größe \n"]),
    "negative cells": block(cells=-2),
    "cells beyond arrays": block(cells=2**61),
    "no block entry": edit(blocks=[1, 2]),
    "index outside": array("indices", [0, 1, 0, 3]),
    "index below": array("indices", [-1, 1, 0, 2]),
    "index repeated": array("indices", [1, 1, 0, 2]),
    "float index": array("indices", [0.0, 1.0, 0.0, 2.0]),
    "two dimensions": array("indices", [[0, 1], [0, 2]]),
    "objects": array("indices", [None, 1, 0, 2]),
    "too short": array("probabilities", [0.1, 0.9, 1.0]),
    "negative mass": array("probabilities", [-0.1, 1.1, 0.5, 0.5]),
    "not a number": array("probabilities", [np.nan, 1.0, 0.5, 0.5]),
    "not one": array("probabilities", [0.1, 0.8, 0.5, 0.5]),
    "single precision": array("probabilities", np.array([0.5, 0.5, 0.5, 0.5], dtype=np.float32)),
    "cut off": shortened,
    "not npy": lambda folder: (folder / "indices.npy").write_bytes(b"x" * 200),
    "missing array": lambda folder: (folder / "indices.npy").unlink(),
    "missing document": lambda folder: (folder / "model.json").unlink(),
    "extra file": lambda folder: (folder / "more.npy").write_bytes(b""),
    "link": linked,
    "folder for a file": folder_instead,
}


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_folders_are_refused(folder, change):
    change(folder)
    with pytest.raises(ReleaseError):
        load_model(folder)


def test_a_link_to_a_folder_is_refused(folder):
    (folder.parent / "link").symlink_to(folder)
    with pytest.raises(ReleaseError, match="not a link"):
        load_model(folder.parent / "link")
