"""What every fitted distribution offers: marginals, rows, conditioning, and a file form without pickle.

A model may be asked about cliques that fit in memory, and under conditions on codes that exist.

Rows in chunks
--------------
Outputs may be larger than memory. The layout is fixed: chunk i holds rows i·chunk_rows onward and draws from its own
generator, made from the seed and i alone. So the rows depend on the model, the seed, the number of rows and the chunk
length, and on nothing else: not on the number of threads, not on the order in which chunks are made.

Bounds on the error
-------------------
How far a fitted model can be from the private table on what was measured follows from noisy answers alone. The exact
counts of a measured table are y − z, with y the noisy answer and z the noise, so for any model counts m

    ‖exact − m‖₁ ≤ ‖y − m‖₁ + ‖z‖₁,

and ‖z‖₁, a sum of independent |z_i| of known distribution, stays below a bound with any wanted confidence. The bound is
Chernoff's, with the distribution's own moment generating function, so it holds for every number of cells. (The bound
that comes with AIM has the same shape but uses that the noise is sub-Gaussian, which costs a factor of about 1.5.)

Files
-----
They may come from a stranger, so they are opened as plain files of bounded size and parsed within bounded memory. A
folder that somebody sends may hold links to devices, pipes that never end, files with a terabyte of holes, and small
documents that grow a thousandfold when they are parsed. Whoever reads a release folder opens its files here.

A model's files are one JSON document and raw arrays, with fixed names and no pickle. Everything is checked before it is
used: which files are there (no links, no extras), how large they are, that each array is one-dimensional, of the
expected type and exactly as long as its file. The document names the kind of the model, the kind names the class.
Another package adds a kind by an entry point of that name in the group `understudy.models`; an unknown kind is refused
with the known ones."""

import abc
import itertools
import json
import math
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from tokenize import TokenError
from types import NoneType, UnionType
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple, Protocol, Self, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Integers
from understudy.domain import Clique, Distribution, Domain
from understudy.errors import Problem, ReleaseError, ResourceError, UsageError, nearest
from understudy.options import Registry

Codes = Mapping[str, Integers]
"""Column name → code of each record (arrays of equal length), every column of the domain."""


class Model(Protocol):
    """A distribution over coded records."""

    kind: ClassVar[str]

    @property
    def domain(self) -> Domain:
        """The codes it speaks about."""
        ...

    @property
    def total(self) -> float:
        """Estimated number of records of the private table, from noisy answers, never below 0."""
        ...

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells (flat row-major, summing to 1)."""
        ...

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` independent records; structural zeros never occur."""
        ...

    def condition(self, where: Mapping[str, Integers]) -> Self:
        """The distribution given that each named column holds one of the codes; raises if that cannot happen."""
        ...

    def save(self, folder: Path) -> None:
        """Writes `model.json` and `arrays.npz`-like raw arrays into an existing empty folder."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote, checking shapes, sizes and ranges before use."""
        ...


MARGINAL_CELLS = 10**8
"""Most cells of a marginal that a model hands out (800 MB)."""


def query_clique(domain: Domain, columns: Iterable[str]) -> Clique:
    """The clique of these columns in schema order.

    Raises:
        ResourceError: if its table would be too large to hold.
    """
    wanted = domain.clique(columns)
    cells = domain.cells(wanted)
    if cells > MARGINAL_CELLS:
        where = f"marginal {' × '.join(wanted)}"
        raise ResourceError(where, cells * 8, MARGINAL_CELLS * 8, "Ask about fewer columns.")
    return wanted


def query_codes(domain: Domain, name: str, codes: npt.ArrayLike) -> Bools:
    """Which codes of a column a condition allows; codes that the column does not have raise."""
    size = domain.sizes[domain.clique([name])[0]]
    mask = np.zeros(size, dtype=bool)
    wanted = np.asarray(codes, dtype=np.int64).ravel()
    if wanted.size and (wanted.min() < 0 or wanted.max() >= size):
        raise UsageError(f"where {name}", f"codes must lie between 0 and {size - 1}.")
    mask[wanted] = True
    return mask


CHUNK_ROWS = 2**18
"""Default rows per chunk; part of what a seed means, so it stays as it is."""


class Draws(Protocol):
    """What rows are drawn from: a model."""

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records."""
        ...


class Chunk(NamedTuple):
    """Coded records and the generator to use for whatever else this chunk needs (values inside bins)."""

    codes: Codes
    rng: np.random.Generator


def chunk_generator(seed: int, number: int) -> np.random.Generator:
    """The generator of one chunk, independent of all others."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


def draw_chunks(model: Draws, rows: int, seed: int, chunk_rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """Chunks of records that add up to `rows`; one empty chunk if `rows` is 0, so that a header can be written."""
    if rows < 0:
        raise UsageError("rows", f"must be 0 or more, got {rows}.")
    if seed < 0:
        raise UsageError("seed", f"must be 0 or more, got {seed}.")
    if chunk_rows < 1:
        raise UsageError("chunk rows", f"must be 1 or more, got {chunk_rows}.")
    return _chunks(model, rows, seed, chunk_rows)


def _chunks(model: Draws, rows: int, seed: int, chunk_rows: int) -> Iterator[Chunk]:
    for number, start in enumerate(range(0, max(rows, 1), chunk_rows)):
        rng = chunk_generator(seed, number)
        yield Chunk(model.draw(min(chunk_rows, rows - start), rng), rng)


_CONTINUOUS = 50.0  # from this σ on, sums over integers equal integrals to all digits of a float
_GOLDEN = (math.sqrt(5) - 1) / 2


def misplaced_share(
    noisy: npt.ArrayLike, model_counts: npt.ArrayLike, distribution: Distribution, confidence: float = 0.95
) -> float:
    """Largest share of records that the model puts in a wrong cell of a measured table, with that confidence.

    Half the L1 distance, over the model's total; 1 if the model is empty.
    """
    answer, model = np.asarray(noisy, dtype=np.float64), np.asarray(model_counts, dtype=np.float64)
    total = float(model.sum())
    if total <= 0:
        return 1.0
    distance = float(np.abs(answer - model).sum()) + noise_sum_bound(distribution, answer.size, confidence)
    return min(1.0, distance / (2 * total))


@lru_cache(maxsize=4096)
def noise_sum_bound(distribution: Distribution, cells: int, confidence: float) -> float:
    """What the sum of |noise| over `cells` cells stays below with that confidence."""
    surprise = -math.log(1 - confidence)

    def bound(log_rate: float) -> float:
        rate = math.exp(log_rate)
        return (cells * _log_mean_exp(distribution, rate) + surprise) / rate

    # Rates are measured in noise scales; for Laplace noise they must stay below one.
    low, high = (
        math.log(1e-6 / distribution.scale),
        math.log((1 - 1e-9 if distribution.kind == "laplace" else 40.0) / distribution.scale),
    )
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = bound(left), bound(right)
    for _ in range(60):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = bound(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = bound(right)
    return min(at_left, at_right)


def _log_mean_exp(distribution: Distribution, rate: float) -> float:
    """log E e^(rate·|z|)."""
    if distribution.kind == "laplace":
        decay = math.exp(-1.0 / distribution.scale)
        grown = math.exp(rate - 1.0 / distribution.scale)
        return math.log((1 - decay) / (1 + decay) * (1 + 2 * grown / (1 - grown)))
    sigma = distribution.scale
    if sigma >= _CONTINUOUS:
        half_normal = 1 + math.erf(rate * sigma / math.sqrt(2))  # 2Φ(rate·σ)
        return (rate * sigma) ** 2 / 2 + math.log(half_normal)
    sizes = np.arange(math.ceil(60 * sigma) + 2, dtype=np.float64)
    weights = -(sizes**2) / (2 * sigma * sigma) + np.where(sizes > 0, math.log(2), 0.0)
    return float(np.logaddexp.reduce(weights + rate * sizes) - np.logaddexp.reduce(weights))


MOST_DOCUMENT_BYTES = 2**26
MOST_VALUES = 4_000_000
"""Values of a JSON document at most: each takes up to 100 bytes when it is parsed."""


def open_plain(path: Path, most_bytes: int) -> BinaryIO:
    """The file opened for reading; links, devices, pipes and oversized files are refused, and none is waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise ReleaseError([Problem(_name(path), "is missing, unreadable or a link.")]) from error
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > most_bytes:
        os.close(descriptor)
        raise ReleaseError([Problem(_name(path), f"must be a plain file of at most {most_bytes:,} bytes.")])
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, most_bytes: int = MOST_DOCUMENT_BYTES) -> bytes:
    """The content of a plain file of bounded size."""
    with open_plain(path, most_bytes) as source:
        content = source.read(most_bytes + 1)  # it may have grown since it was opened
    if len(content) > most_bytes:
        raise ReleaseError([Problem(_name(path), f"must be a plain file of at most {most_bytes:,} bytes.")])
    return content


def read_json(path: Path) -> object:
    """The JSON document in a plain file of bounded size."""
    return parse_json(read_plain(path, MOST_DOCUMENT_BYTES), _name(path))


def parse_json(content: bytes, name: str) -> object:
    """The JSON document: UTF-8, every key once, finite numbers, and not more values than memory is kept for."""
    try:
        if sum(content.count(mark) for mark in (b",", b"[", b"{", b":")) > MOST_VALUES:
            raise ValueError("too many values")
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ReleaseError([Problem(name, "is not a JSON document.", "Restore the folder.")]) from error


def read_as(form: Any, value: object) -> Any:
    """A JSON value as the type it is declared to be, and nothing else: numbers are no truth values, texts no numbers.

    Forms are str, int, float, bool, their unions with None, literals, fractions as text, tuples of one form, mappings
    from text to one form, and dataclasses of these, of which every field must be there and other keys are passed over.

    >>> read_as(tuple[int, ...], [1, 2])
    (1, 2)

    Raises:
        TypeError, ValueError, KeyError: if the value has another form.
    """
    parts = get_args(form)
    if isinstance(form, UnionType):
        (inner,) = (part for part in parts if part is not NoneType)
        return None if value is None else read_as(inner, value)
    if get_origin(form) is tuple and isinstance(value, list):
        return tuple(read_as(parts[0], one) for one in value)
    if get_origin(form) is Literal and isinstance(value, str) and value in parts:
        return value
    if get_origin(form) is Mapping and isinstance(value, dict):
        return {read_as(str, name): read_as(parts[1], one) for name, one in value.items()}
    if is_dataclass(form) and isinstance(value, dict):
        hints = get_type_hints(form)
        return form(**{one.name: read_as(hints[one.name], value[one.name]) for one in fields(form)})  # type: ignore[operator]
    if form is Fraction:
        return fraction_of(value)
    if form in (Any, object) or type(value) is form or (form is float and type(value) is int):
        return value
    raise TypeError("form")


_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?", re.ASCII)


def fraction_of(text: object) -> Fraction:
    """The fraction that `str` wrote, and nothing else: "1e999999999" would take all memory.

    >>> fraction_of("2/3")
    Fraction(2, 3)
    """
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ValueError("fraction")
    return Fraction(text)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not a number")


def _name(path: Path) -> str:
    return path.name.encode("unicode_escape", "backslashreplace").decode("ascii")


DOCUMENT = "model.json"
_FORMAT = "understudy model"
_VERSION = 1
_ARRAY_BYTES = 2**36
_MEMORY_SHARE = 0.8
_HEADER_BYTES = 1024
_COLUMNS = 100_000
_CODES = 2**32
SUM_TOLERANCE = 1e-6
"""How far from 1 the sum of stored probabilities may lie."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelFiles:
    """What a model folder holds: a JSON document and named one-dimensional arrays."""

    document: Mapping[str, object]
    arrays: Mapping[str, npt.NDArray[Any]]

    def number(self, key: str) -> float:
        """A number of the document that a float can hold."""
        value = self.document.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            return float(value)
        raise _refusal(key, "must be a finite number.")

    def domain(self) -> Domain:
        """The domain stated in the document: a list of [column, number of codes]."""
        sizes = self.sizes("domain")
        if not 0 < len(sizes) <= _COLUMNS:
            raise _refusal("domain", f"must be a list of 1 to {_COLUMNS:,} columns.")
        return Domain.of(sizes)

    def sizes(self, key: str) -> dict[str, int]:
        """A list of [column, number of codes] in the document, each column once."""
        sizes: dict[str, int] = {}
        for entry in self.value(key, tuple[tuple[Any, ...], ...]):
            if len(entry) != 2 or not isinstance(entry[0], str) or entry[0] in sizes:
                raise _refusal(key, "each entry must be [column, number of codes], each column once.")
            if type(entry[1]) is not int or not 0 < entry[1] <= _CODES:
                raise _refusal(key, f"a column must have 1 to {_CODES:,} codes.")
            sizes[entry[0]] = entry[1]
        return sizes

    def value(self, key: str, form: Any) -> Any:
        """What the document holds under a key, known to be of that form (see `read_as`)."""
        try:
            return read_as(form, self.document[key])
        except (TypeError, ValueError, KeyError) as error:
            raise _refusal(key, "is not there or not of the form that this kind of model has.") from error

    def pieces(self, name: str, lengths: Iterable[int]) -> list[npt.NDArray[Any]]:
        """An array cut into pieces of these lengths, which must be all of it."""
        array, ends = self.arrays[name], [0, *itertools.accumulate(lengths)]
        if ends[-1] != array.size or any(low > high for low, high in itertools.pairwise(ends)):
            raise _refusal(name, "the array is not as long as the document says.")
        return [array[low:high] for low, high in itertools.pairwise(ends)]


def size_list(domain: Domain) -> list[list[object]]:
    """A domain as documents hold it: a list of [column, number of codes]."""
    return [[name, size] for name, size in domain.sizes.items()]


Contents = tuple[Mapping[str, object], Mapping[str, Sequence[npt.NDArray[Any]]]]
"""What a model is made of: the entries of its document, and the pieces of each of its arrays."""


class StoredModel(abc.ABC):
    """A model whose files follow from a declaration: which arrays it has, and what it is made of.

    A folder may come from a stranger, so `load` checks names, types and sizes of all files; `of_contents` asks for
    entries by their form and for pieces by their lengths; and what does not fit together raises UsageError there or in
    the constructor, which becomes a finding about the folder.
    """

    __slots__ = ()
    kind: ClassVar[str]
    stored: ClassVar[Mapping[str, str]]
    """Array → type of its numbers in the file."""

    @abc.abstractmethod
    def contents(self) -> Contents:
        """What the model is made of."""

    @classmethod
    @abc.abstractmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model that is made of this."""

    def save(self, folder: Path) -> None:
        """Writes `model.json` and the raw arrays into an existing empty folder."""
        document, pieces = self.contents()
        arrays = {
            name: np.concatenate([np.zeros(0, kind), *(one.ravel().astype(kind, copy=False) for one in pieces[name])])
            for name, kind in self.stored.items()
        }
        write_model_files(folder, ModelFiles({"kind": self.kind, **document}, arrays))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: if a file is missing, altered, too large or of the wrong type.
        """
        files = read_model_files(folder, cls.kind, {name: np.dtype(kind) for name, kind in cls.stored.items()})
        try:
            return cls.of_contents(files)
        except UsageError as error:
            raise ReleaseError([Problem("model", error.problem.rule)]) from error


def total_faults(total: float) -> list[str]:
    """What is wrong with a number of records, in words; empty if nothing is."""
    return [] if math.isfinite(total) and total >= 0.0 else ["the total must be finite and 0 or more."]


def probability_faults(probabilities: Floats) -> list[str]:
    """What is wrong with the probabilities of one table, in words; empty if nothing is."""
    if not np.all(np.isfinite(probabilities)) or probabilities.min() < 0.0:
        return ["probabilities must be finite and 0 or more."]
    return [] if abs(probabilities.sum() - 1.0) <= SUM_TOLERANCE else ["probabilities must add up to 1."]


def write_model_files(folder: Path, files: ModelFiles) -> None:
    """Writes the document and the arrays into an existing empty folder, one fixed file name each."""
    if not folder.is_dir() or any(folder.iterdir()):
        raise UsageError(f"folder {folder.name!r}", "must exist and be empty.", "Choose another place.")
    for name, array in files.arrays.items():
        kind = array.dtype.newbyteorder("<")
        with (folder / f"{name}.npy").open("xb") as target:
            np.lib.format.write_array(target, np.ascontiguousarray(array, dtype=kind), (1, 0), allow_pickle=False)
    document = {"format": _FORMAT, "version": _VERSION, **files.document}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    with (folder / DOCUMENT).open("x", encoding="utf-8") as written:
        written.write(text + "\n")


def read_model_files(folder: Path, kind: str, dtypes: Mapping[str, np.dtype[np.generic]]) -> ModelFiles:
    """Reads a folder that must hold the document and exactly these arrays.

    Raises:
        ReleaseError: if anything is missing, extra, linked, too large or of the wrong type.
    """
    document = read_document(folder)
    if document.get("kind") != kind:
        raise _refusal("kind", f"must be {kind!r}.")
    expected = {DOCUMENT, *(f"{name}.npy" for name in dtypes)}
    present = {entry.name for entry in os.scandir(folder)}
    if present != expected:
        names = ", ".join(sorted(expected))
        raise ReleaseError([Problem("model folder", f"must hold exactly {names}.", "Copy the whole folder again.")])
    return ModelFiles(document, {name: _read_array(folder / f"{name}.npy", dtype) for name, dtype in dtypes.items()})


def read_document(folder: Path) -> Mapping[str, object]:
    """The JSON document of a model folder, known to be an object of this format and version."""
    if folder.is_symlink() or not folder.is_dir():
        raise ReleaseError([Problem("model folder", "must be a folder, not a link.")])
    document = read_json(folder / DOCUMENT)
    if not isinstance(document, dict) or document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise ReleaseError([Problem(DOCUMENT, f"must state format {_FORMAT!r} and version {_VERSION}.")])
    return document


def _read_array(path: Path, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    wrong = ReleaseError([Problem(path.name, f"must be a one-dimensional array of {dtype.name}, as long as its file.")])
    with open_plain(path, _ARRAY_BYTES) as source:
        try:
            if np.lib.format.read_magic(source) != (1, 0):
                raise wrong
            shape, _, found = np.lib.format.read_array_header_1_0(source, max_header_size=_HEADER_BYTES)
        except (ValueError, TypeError, SyntaxError, EOFError, KeyError, RecursionError, TokenError) as error:
            raise wrong from error
        body = os.fstat(source.fileno()).st_size - source.tell()
        if found != dtype or len(shape) != 1 or math.prod(shape) * dtype.itemsize != body:
            raise wrong
        _check_memory(path.name, body)
        array = np.fromfile(source, dtype=dtype, count=shape[0])
    if array.size != shape[0]:
        raise wrong
    return array.astype(dtype.newbyteorder("="), copy=False)


def _check_memory(name: str, size: int) -> None:
    limit = int(_MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if size > limit:  # a file of holes takes no room on a disk
        raise ResourceError(f"array {name!r}", size, limit, "Use a machine with more memory.")


def _refusal(key: str, rule: str) -> ReleaseError:
    return ReleaseError([Problem(f"{DOCUMENT}: {key}", rule)])


MODELS: Registry[Model] = Registry(
    "model",
    {
        "bayesian_network": "understudy.models.bayes_net:BayesianNetwork",
        "blocks": "understudy.models.product:BlockModel",
        "expanded_field": "understudy.models.markov_field:ExpandedField",
        "labels": "understudy.models.label_trees:LabelModel",
        "markov_field": "understudy.models.markov_field:MarkovField",
        "mixture": "understudy.models.mixture:MixtureModel",
        "records": "understudy.models.records:RecordModel",
        "tree": "understudy.models.histogram_tree:TreeModel",
    },
)
"""Kinds of models. Some classes bring a compiler, so each is loaded for its own models only."""


def register(model: type[Model]) -> None:
    """Makes a class known under its `kind` in this process, so that `load_model` can find it; a taken kind raises."""
    MODELS.register(model.kind, model)


def save_model(model: Model, folder: Path) -> None:
    """Writes the model into `folder`, which is created if missing and must otherwise be empty."""
    if model.kind not in MODELS or MODELS.find(model.kind) is not type(model):
        raise UsageError(f"model kind {model.kind!r}", "is not registered, so it could not be loaded again.")
    folder.mkdir(exist_ok=True)
    model.save(folder)


def load_model(folder: Path) -> Model:
    """The model saved in `folder`, every file checked before use.

    Raises:
        ReleaseError: if the folder is incomplete, altered or of an unknown kind.
    """
    kind = read_document(folder).get("kind")
    if not isinstance(kind, str) or kind not in MODELS:
        hint = nearest(kind if isinstance(kind, str) else "", MODELS.names())
        raise ReleaseError([Problem(f"{DOCUMENT}: kind", "is not a kind of model known here.", hint)])
    return MODELS.find(kind).load(folder)
