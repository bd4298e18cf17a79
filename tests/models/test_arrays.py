import numpy as np
import pytest

from understudy.errors import ReleaseError, UsageError
from understudy.models.model import ModelFiles, read_model_files, write_model_files

INTS = {"cells": np.dtype("<i8")}


def write(folder, **document):
    write_model_files(folder, ModelFiles({"kind": "k", **document}, {"cells": np.arange(3)}))


def test_any_kind_can_use_the_files(tmp_path):
    write(tmp_path, size=2.5)
    files = read_model_files(tmp_path, "k", INTS)
    assert files.number("size") == 2.5
    assert files.arrays["cells"].tolist() == [0, 1, 2]
    with pytest.raises(ReleaseError, match=r"model\.json: missing"):
        files.number("missing")
    with pytest.raises(ReleaseError, match="kind"):
        read_model_files(tmp_path, "other", INTS)


def test_unwritable_numbers_and_places_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path, size=float("nan"))
    with pytest.raises(UsageError, match="empty"):
        write(tmp_path / "missing")


def test_big_endian_arrays_are_stored_little_endian(tmp_path):
    write_model_files(tmp_path, ModelFiles({"kind": "k"}, {"cells": np.arange(3, dtype=">i8")}))
    assert read_model_files(tmp_path, "k", INTS).arrays["cells"].tolist() == [0, 1, 2]
