"""Puts a changed module in the place of the loaded one, without loading anything else again.

The changed source is run in a namespace of its own, and what came out of it is moved into the loaded module: the code
and the defaults of every function and method that changed, and the values of constants, wherever they were imported to.
Classes stay the objects they were, so that whatever else is loaded goes on working.

Compiled kernels are the delicate part: machine code that was kept on disk knows nothing of the change. The changed
kernel and every kernel that it is compiled into are compiled anew, and are never kept.
"""

import ast
import functools
import sys
import types
from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib import import_module

import numba

from tests.mutation.mutants import Mutant, mutated
from tests.mutation.targets import path_of, source_of

_SIMPLE = (bool, int, float, str, bytes, Fraction, tuple, frozenset, set, dict, list)


class NotInPlaceError(Exception):
    """The change cannot be moved into the loaded module."""


def put_in_place(mutant: Mutant) -> None:
    """Makes the loaded module the mutant. Meant for a process of its own: there is no way back."""
    source = source_of(mutant.module)
    kernels = affected_kernels(source, mutant.function)
    moved = replace_module(mutant.module, mutated(source, mutant), kernels)
    if not moved:
        raise NotInPlaceError(str(mutant))


def replace_module(module: str, tree: ast.Module, kernels: frozenset[str] = frozenset(), **extra: object) -> int:
    """Runs the tree and moves what differs into the loaded module; how many things were moved."""
    loaded = import_module(f"understudy.{module}")
    fresh = types.ModuleType(loaded.__name__)
    fresh.__dict__.update(__file__=loaded.__file__, __package__=loaded.__package__, **extra)
    loaded.__dict__.update(extra)
    keep = sys.modules["understudy.compiled"]
    usual = keep.compiled
    try:
        keep.compiled = lambda: _compiling(usual, kernels)
        sys.modules[loaded.__name__] = fresh  # dataclasses look their module up
        exec(compile(tree, str(path_of(module)), "exec"), fresh.__dict__)  # noqa: S102
    finally:
        keep.compiled = usual
        sys.modules[loaded.__name__] = loaded
    moved = _move_functions(loaded.__dict__, fresh.__dict__)
    moved += _move_classes(loaded.__dict__, fresh.__dict__)
    return moved + _move_values(loaded, fresh, kernels)


def _compiling(usual, kernels: frozenset[str]):  # noqa: ANN001, ANN202
    def decorate(function):  # noqa: ANN001, ANN202
        return numba.njit(nogil=True)(function) if function.__name__ in kernels else usual()(function)

    return decorate


def affected_kernels(source: str, function: str) -> frozenset[str]:
    """The kernels that a change in a function, or in the module outside of all functions, is compiled into."""
    kernels = {
        node.name: {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and is_kernel(node)
    }
    if function == "module":
        return frozenset(kernels)
    affected = {function} & set(kernels)
    while True:
        more = {name for name, used in kernels.items() if used & affected} - affected
        if not more:
            return frozenset(affected)
        affected |= more


def is_kernel(node: ast.FunctionDef) -> bool:
    """Whether numba compiles it."""
    return any(ast.unparse(part).startswith(("compiled", "nb.njit", "numba.njit")) for part in node.decorator_list)


def _move_functions(old: Mapping[str, object], new: Mapping[str, object]) -> int:
    moved = 0
    for name, found in list(old.items()):
        if name.startswith("__") and not callable(found):
            continue
        before, after = _plain(found), _plain(new.get(name))
        if before is None or after is None or before.__module__ != after.__module__:
            continue
        if not _differ(before, after):
            continue
        try:
            before.__code__ = after.__code__
        except ValueError as error:
            raise NotInPlaceError(name) from error
        before.__defaults__, before.__kwdefaults__ = after.__defaults__, after.__kwdefaults__
        moved += 1
    return moved


def _differ(before: types.FunctionType, after: types.FunctionType) -> bool:
    if before.__code__ != after.__code__:
        return True
    kept = (before.__defaults__, before.__kwdefaults__), (after.__defaults__, after.__kwdefaults__)
    return repr(kept[0]) != repr(kept[1])


def _plain(found: object) -> types.FunctionType | None:
    """The function behind a property, a class method or a cache."""
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, classmethod | staticmethod):
        found = found.__func__
    elif isinstance(found, functools.cached_property):
        found = found.func
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found if isinstance(found, types.FunctionType) else None


def _classes(namespace: Mapping[str, object], module: str) -> Iterator[tuple[str, type]]:
    for name, found in list(namespace.items()):
        if isinstance(found, type) and found.__module__ == module:
            yield name, found


def _move_classes(old: Mapping[str, object], new: Mapping[str, object]) -> int:
    moved = 0
    for name, before in _classes(old, str(old["__name__"])):
        after = new.get(name)
        if not isinstance(after, type) or after is before:
            continue
        moved += _move_functions(before.__dict__, after.__dict__) + _move_classes(
            {**before.__dict__, "__name__": before.__module__}, after.__dict__
        )
        for key, value in list(before.__dict__.items()):
            new_value = after.__dict__.get(key)
            if not key.startswith("__") and isinstance(value, _SIMPLE) and repr(value) != repr(new_value):
                setattr(before, key, new_value)
                moved += 1
    return moved


def _move_values(loaded: types.ModuleType, fresh: types.ModuleType, kernels: frozenset[str]) -> int:
    moved = 0
    for name, before in list(loaded.__dict__.items()):
        if name.startswith("__") or name not in fresh.__dict__:
            continue
        after = fresh.__dict__[name]
        changed = isinstance(before, _SIMPLE) and _plain(before) is None and repr(before) != repr(after)
        if changed or name in kernels:
            for place in list(sys.modules.values()):
                if getattr(place, "__name__", "").startswith(("understudy", "tests")):
                    moved += _put(place.__dict__, name, before, after)
    return moved


def _put(namespace: dict[str, object], name: str, before: object, after: object) -> int:
    if name in namespace and (namespace[name] is before or repr(namespace[name]) == repr(before)):
        namespace[name] = after
        return 1
    return 0
