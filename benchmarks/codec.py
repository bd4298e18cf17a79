"""Speed of coding and decoding on one core, beside Arrow's own lookup. Run: python benchmarks/codec.py [rows]"""

import datetime as dt
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.table import TableCodec
from understudy.schema import Category, Date, Float, Integer, Schema, Unit


def rate(work: Callable[[], object], values: int) -> str:
    """Millions of values per second of CPU time, best of three."""
    best = min(_seconds(work) for _ in range(3))
    return f"{values / best / 1e6:8.1f} M/s"


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return max(time.process_time() - start, 1e-9)


def main(rows: int) -> None:
    rng = np.random.default_rng(0)
    labels = tuple(map(str, range(20)))
    words = tuple(f"label number {place}" for place in range(20))
    columns = (
        Category(name="numbered", labels=labels),
        Category(name="worded", labels=words),
        Integer(name="age", lower=0, upper=99),
        Integer(name="income", lower=0, upper=10**6),
        Float(name="rate", lower=0.0, upper=1.0),
        Date(name="born", lower=dt.date(1950, 1, 1), upper=dt.date(2020, 12, 31)),
    )
    codec = TableCodec.of(Schema(columns=columns, unit=Unit()))
    numbers = rng.integers(0, 20, rows)
    texts = pa.array(words).take(pa.array(numbers))
    wanted = pa.array(words)
    inputs = {
        "numbered, uint8": ("numbered", pa.array(numbers.astype(np.uint8))),
        "numbered, int64": ("numbered", pa.array(numbers)),
        "numbered, int64 as float": ("numbered", pa.array(numbers.astype(float))),
        "worded, string": ("worded", texts),
        "worded, dictionary": ("worded", texts.dictionary_encode()),
        "age, int64": ("age", pa.array(rng.integers(-5, 110, rows))),
        "age, string": ("age", pa.array(rng.integers(-5, 110, rows)).cast(pa.string())),
        "income, int64": ("income", pa.array(rng.integers(0, 10**6, rows))),
        "rate, float64": ("rate", pa.array(rng.random(rows))),
        "rate, string": ("rate", pa.array(rng.random(rows)).cast(pa.string())),
        "born, date32": ("born", pa.array(rng.integers(-7000, 18000, rows).astype(np.int32)).cast(pa.date32())),
    }
    print(f"encode {rows:,} values")
    for title, (name, array) in inputs.items():
        print(f"  {title:26}", rate(lambda name=name, array=array: codec.encode(name, array), rows))
    print(f"  {'pc.index_in on strings':26}", rate(lambda: pc.index_in(texts, value_set=wanted), rows))
    wide = TableCodec.of(Schema(columns=tuple(Category(name=f"c{i}", labels=words) for i in range(15)), unit=Unit()))
    codes = {name: rng.integers(0, size, rows).astype(np.uint8) for name, size in wide.domain.sizes.items()}
    print("decode 15 categories, rows ", rate(lambda: wide.decode(codes, rng), rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
