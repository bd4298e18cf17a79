import numpy as np
import pyarrow as pa

from tests.codec.examples import codec_of
from understudy.schema import Boolean, Category, Cut, Derived, Float, Integer, LinearSum, Lookup

SOURCES = (
    Integer(name="a", lower=0, upper=10, special=(99,)),
    Integer(name="b", lower=0, upper=10),
    Float(name="f", lower=0.0, upper=1.0, decimals=1),
    Category(name="c", labels=("x", "y", "z")),
    Boolean(name="flag"),
)


def derive(formula, storage="", **chosen):
    codec = codec_of(*SOURCES, Derived(name="out", formula=formula, storage=storage))
    rows = len(next(iter(chosen.values())))
    codes = {name: np.zeros(rows, np.uint8) for name in codec.domain.columns}
    for name, values in chosen.items():
        codes[name] = codec.encode(name, pa.array(values))
    return codec.decode(codes, np.random.default_rng(0))["out"].combine_chunks()


def test_whole_sums_are_integers():
    out = derive(LinearSum({"a": 2.0, "b": -1.0}, constant=3.0), a=[1, 99, None, 10], b=[1, 1, 1, 0])
    assert out.equals(pa.array([4, None, None, 23], pa.int64()))


def test_other_sums_are_floats_unless_stored_otherwise():
    assert derive(LinearSum({"a": 0.5}), a=[1, None]).equals(pa.array([0.5, None], pa.float64()))
    assert derive(LinearSum({"a": 1.0, "f": 1.0}), a=[1], f=[1.0]).type == pa.float64()
    assert derive(LinearSum({"a": 1.0}), "float", a=[1]).equals(pa.array([1.0], pa.float32()))


def test_sums_that_do_not_fit_are_missing():
    assert derive(LinearSum({"a": 1.0}, constant=2.0**62), a=[1]).to_pylist() == [None]
    assert derive(LinearSum({"a": 1.0}), "int8", a=[5]).to_pylist() == [5]
    assert derive(LinearSum({"a": 100.0}), "int8", a=[1, 2]).to_pylist() == [100, None]


def test_lookup():
    entries = {"x": "first", "y": "second"}
    assert derive(Lookup("c", entries), c=["x", "y", "z", None]).to_pylist() == ["first", "second", None, None]
    assert derive(Lookup("c", entries, otherwise="-"), c=["x", "z", None]).to_pylist() == ["first", "-", "-"]
    assert derive(Lookup("flag", {"true": "yes"}, otherwise="no"), flag=[True, False]).to_pylist() == ["yes", "no"]


def test_cut_bands_include_the_last_end():
    bands = Cut("a", (0.0, 5.0, 9.0), ("low", "high"))
    assert derive(bands, a=[0, 4, 5, 9, 10, 99, None]).to_pylist() == ["low", "low", "high", "high", None, None, None]
    assert derive(bands, "large_string", a=[0]).type == pa.large_string()
