"""One registry for methods, metrics, models and sources: lazy, open to other packages, closed for built-in names."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import understudy as us
from understudy.codec.table import TableCodec
from understudy.counts.opening import SOURCES, open_table
from understudy.counts.readers import StreamedTable
from understudy.counts.source import Batch, PrivateTable
from understudy.domain import Clique, Domain
from understudy.errors import InputError, ReleaseError, UsageError
from understudy.evaluate.metric import METRICS, Context, Metric, Result, Scale, TablePair
from understudy.evaluate.suite import chosen_metrics
from understudy.methods.independent import Independent
from understudy.methods.method import METHODS
from understudy.models.model import MODELS, load_model, save_model
from understudy.models.product import BlockModel
from understudy.options import Registry
from understudy.schema import Schema
from understudy.testing import cases as tables

REGISTRIES = [METHODS, METRICS, MODELS, SOURCES]
HERE = "tests.test_registry"


@dataclass(frozen=True, slots=True)
class OwnMethod(Independent):
    name: ClassVar[str] = "own"


@dataclass(frozen=True, slots=True)
class OwnMetric(Metric):
    name: ClassVar[str] = "own"
    question: ClassVar[str] = "Is there a number?"
    scales: ClassVar[tuple[Scale, ...]] = (Scale("half", "always one half"),)

    def compare(self, pair: TablePair, context: Context) -> Result:
        return Result(self.name, self.question, (self.scales[0].score(0.5, 0.5),))


class OwnModel(BlockModel):
    __slots__ = ()
    kind: ClassVar[str] = "own"


class OwnSource(PrivateTable):
    def __init__(self, location: str | Path, schema: Schema, *, memory_bytes: int, threads: int) -> None:
        self._rows = tables.some_rows(schema, int(Path(str(location)).stem), seed=1)
        super().__init__(self._rows.column_names, schema, memory_bytes=memory_bytes, threads=threads)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        yield self._rows.num_rows, {name: self._rows.column(name) for name in columns}


OFFERED = {
    "understudy.methods": [("own", "OwnMethod"), ("laplace", "OwnMethod")],
    "understudy.metrics": [("own", "OwnMetric"), ("marginals", "OwnMetric")],
    "understudy.models": [("own", "OwnModel"), ("blocks", "OwnModel")],
    "understudy.sources": [("own", "OwnSource"), (".own", "OwnSource"), (".csv", "OwnSource")],
}
BROKEN = [("broken", "Nowhere"), ("bad", "HERE")]


def offering(patch: pytest.MonkeyPatch, *more: tuple[str, str]) -> None:
    def found(group: str) -> list[EntryPoint]:
        return [EntryPoint(name, f"{HERE}:{value}", group) for name, value in (*OFFERED[group], *more)]

    patch.setattr("understudy.options.entry_points", found)


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    offering(monkeypatch)


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.what)
def test_every_built_in_name_leads_to_its_class(registry: Registry[Any]) -> None:
    for name in registry.built_in:
        kind: Any = registry.find(name)
        assert issubclass(kind, registry.base)
        if registry is METHODS or registry is METRICS:
            assert kind.name == name
        if registry is MODELS:
            assert kind.kind == name


@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.what)
def test_other_packages_add_names_and_take_none_over(registry: Registry[object]) -> None:
    built_in = {name: registry.find(name) for name in registry.built_in}
    assert registry.find("own").__name__ == f"Own{registry.what.capitalize()}"
    assert set(registry.names()) >= {"own", *built_in}
    assert len(set(registry.names())) == len(registry.names())
    assert {name: registry.find(name) for name in registry.built_in} == built_in
    with pytest.raises(UsageError, match=r'is not known.*Did you mean "own"'):
        registry.find("ownn")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.what)
def test_what_cannot_be_used_is_named(registry: Registry[object], monkeypatch: pytest.MonkeyPatch) -> None:
    offering(monkeypatch, *BROKEN)
    with pytest.raises(UsageError, match=r"'broken' is offered by a package as .*Nowhere', which cannot be loaded"):
        registry.find("broken")
    with pytest.raises(UsageError, match=r"'bad' is offered by a package as .*HERE', which is no subclass of"):
        registry.find("bad")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.what)
def test_a_taken_name_is_not_registered_again(registry: Registry[object]) -> None:
    before = dict(registry.built_in)
    name = next(iter(before))
    with pytest.raises(UsageError, match="taken by another class"):
        registry.register(name, int)
    assert registry.built_in == before


@pytest.mark.usefixtures("offered")
def test_an_offered_method_runs_and_an_offered_metric_only_if_asked() -> None:
    schema = tables.small()
    rows = tables.possible_rows(schema, 60, seed=1)
    release = us.synthesize(rows, schema, method="own", epsilon=1.0)
    assert release.statement.method == "own"
    assert us.evaluate(rows, release, metrics=["own"]).results[0].value == 0.5
    assert "own" not in {one.name for one in chosen_metrics(None, {}, None)}
    assert us.methods()["own"].summary == us.methods()["independent"].summary
    assert us.metrics()["own"].question == "Is there a number?"


@pytest.mark.usefixtures("offered")
def test_an_offered_source_is_asked_by_the_suffix_or_scheme_it_declares(tmp_path: Path) -> None:
    schema = tables.small()
    for location in ("own://somewhere/7", tmp_path / "7.own", "7.OWN"):
        opened = open_table(location, schema)
        assert isinstance(opened, OwnSource)
        assert opened.bind(TableCodec.of(schema)).counts([Clique()])[Clique()].tolist() == [7]
    (tmp_path / "7.csv").write_text("registered,voted,age\n")
    assert isinstance(open_table(tmp_path / "7.csv", schema), StreamedTable)
    (tmp_path / "7.other").touch()
    with pytest.raises(InputError, match=r"suffix '\.other' is not known"):
        open_table(tmp_path / "7.other", schema)
    with pytest.raises(InputError, match="has a scheme that is not known"):
        open_table("other://7", schema)


@pytest.mark.usefixtures("offered")
def test_an_offered_model_is_saved_and_loaded(tmp_path: Path) -> None:
    domain = Domain.of({"a": 2})
    model = OwnModel.of_marginals(domain, {Clique(("a",)): np.array([1.0, 3.0])}, (), 4.0)
    save_model(model, tmp_path / "model")
    assert type(load_model(tmp_path / "model")) is OwnModel
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("understudy.options.entry_points", lambda group: [])
        with pytest.raises(ReleaseError, match="not a kind of model known here"):
            load_model(tmp_path / "model")


def _loaded(code: str) -> set[str]:
    """Modules of the package that are loaded once this code has run in a fresh process."""
    shown = "import json, sys; print(json.dumps([name for name in sys.modules if name.startswith('understudy.')]))"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{shown}"], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_asking_for_one_method_loads_no_other() -> None:
    loaded = _loaded("from understudy.methods.method import method_named; method_named('aim')")
    kinds = {place.partition(":")[0] for place in METHODS.built_in.values() if isinstance(place, str)}
    assert loaded & kinds == {"understudy.methods.aim"}
    unwanted = {"methods.networks", "methods.steps_tree", "models.histogram_tree", "models.records", "models.mixture"}
    assert not {f"understudy.{name}" for name in unwanted} & loaded


def test_asking_for_one_metric_or_model_loads_no_other() -> None:
    loaded = _loaded("from understudy.evaluate.metric import METRICS; METRICS.make('rules')")
    kinds = {place.partition(":")[0] for place in METRICS.built_in.values() if isinstance(place, str)}
    assert loaded & kinds == {"understudy.evaluate.records"}
    loaded = _loaded("from understudy.models.model import MODELS; MODELS.find('blocks')")
    assert "understudy.models.product" in loaded
    assert not {"understudy.models.markov_field", "understudy.models.histogram_tree"} & loaded


def test_catalogues_are_mappings_that_show_themselves() -> None:
    methods, metrics = us.methods(), us.metrics()
    assert list(methods) == sorted(METHODS.built_in)
    assert list(metrics) == list(METRICS.built_in)
    assert len(methods) == len(METHODS.built_in)
    assert methods["aim"].guarantee == "(ε, δ) through ρ-zCDP"
    assert "workload" in {option.name for option in methods["aim"].options}
    shown = repr(methods).splitlines()
    assert shown[0].split() == ["name", "guarantee", "summary"]
    assert len(shown) == len(methods) + 2
    assert next(line for line in shown if line.startswith("aim ")).endswith(methods["aim"].summary)
    assert metrics["pmse"].question in repr(metrics)
    with pytest.raises(KeyError, match="Did you mean"):
        methods["aimm"]


def test_a_class_that_is_no_dataclass_of_its_own_has_no_options() -> None:
    class Bare(Independent):
        extra: int = 1

    with pytest.raises(UsageError, match="must be a dataclass"):
        Registry("method", {"bare": Bare}).make("bare")
