"""Puts a changed module in the place of the loaded one, without loading anything else again.

The changed source is run in a namespace of its own, and what came out of it is moved into the loaded module: the code
and the defaults of every function and method that changed, and the values of constants, wherever they were imported to.
Classes stay the objects they were, so that whatever else is loaded goes on working.

Compiled kernels are the delicate part: machine code that was kept on disk knows nothing of the change. The changed
kernel and every kernel that it is compiled into are compiled anew, and are never kept.
"""

import ast
import dataclasses
import functools
import re
import sys
import types
from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any

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
    if not moved and not _assigned_anew(mutant, mutated(source, mutant)):
        raise NotInPlaceError(str(mutant))


def _assigned_anew(mutant: Mutant, tree: ast.Module) -> bool:
    """Runs the changed assignment of a module alone, among what is loaded: for tables that hold functions."""
    field, place = mutant.path[0]
    node = tree.body[place] if field == "body" and place is not None else None
    if mutant.function != "module" or not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    loaded = import_module(f"understudy.{mutant.module}")
    before = dict(loaded.__dict__)
    exec(compile(ast.Module([node], []), str(loaded.__file__), "exec"), loaded.__dict__)  # noqa: S102
    for name, after in list(loaded.__dict__.items()):
        if name in before and before[name] is not after:
            for other in list(sys.modules.values()):
                if getattr(other, "__name__", "").startswith(("understudy", "tests")):
                    other.__dict__.update({key: after for key, one in other.__dict__.items() if one is before[name]})
    return True


def replace_module(module: str, tree: ast.Module, kernels: frozenset[str] = frozenset(), **extra: object) -> int:
    """Runs the tree and moves what differs into the loaded module; how many things were moved."""
    loaded = import_module(f"understudy.{module}")
    fresh = types.ModuleType(loaded.__name__)
    fresh.__dict__.update(__file__=loaded.__file__, __package__=loaded.__package__, **extra)
    loaded.__dict__.update(extra)
    keep: Any = import_module("understudy.compiled")
    usual = keep.compiled
    try:
        keep.compiled = lambda **options: _compiling(usual(**options), kernels)
        sys.modules[loaded.__name__] = fresh  # dataclasses look their module up
        exec(compile(tree, str(path_of(module)), "exec"), fresh.__dict__)  # noqa: S102
    finally:
        keep.compiled = usual
        sys.modules[loaded.__name__] = loaded
    moved = _move_functions(loaded.__dict__, fresh.__dict__)
    moved += _move_classes(loaded.__dict__, fresh.__dict__)
    return moved + _move_values(loaded, fresh, kernels)


def _compiling(usual, kernels: frozenset[str]):
    def decorate(function):
        return numba.njit(nogil=True)(function) if function.__name__ in kernels else usual(function)

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
    """Whether numba compiles it, by itself or into what calls it."""
    known = ("compiled", "within_kernels", "nb.njit", "numba.njit")
    return any(ast.unparse(part).startswith(known) for part in node.decorator_list)


def _move_functions(old: Mapping[str, object], new: Mapping[str, object]) -> int:
    return sum(
        _moved(_plain(found), _plain(new.get(name)))
        for name, found in list(old.items())
        if not name.startswith("__") or callable(found)
    )


def _moved(before: types.FunctionType | None, after: types.FunctionType | None) -> int:
    """Gives a function the code and the defaults of its new form; 1 if that changes anything."""
    if before is None or after is None or before.__module__ != after.__module__ or not _differ(before, after):
        return 0
    try:
        before.__code__ = after.__code__
    except ValueError as error:
        raise NotInPlaceError(before.__qualname__) from error
    before.__defaults__, before.__kwdefaults__ = after.__defaults__, after.__kwdefaults__
    return 1


def _move_inside(before: object, after: object) -> int:
    """The same for functions in tables of functions, which stay the tables that they are."""
    if isinstance(before, types.FunctionType):
        return _moved(before, _plain(after))
    if isinstance(before, dict) and isinstance(after, dict):
        return sum(_move_inside(value, after.get(key)) for key, value in before.items())
    if isinstance(before, tuple | list) and isinstance(after, tuple | list):
        return sum(_move_inside(one, other) for one, other in zip(before, after, strict=False))
    if dataclasses.is_dataclass(before) and dataclasses.is_dataclass(after):
        names = [field.name for field in dataclasses.fields(before)]
        return sum(_move_inside(getattr(before, name), getattr(after, name, None)) for name in names)
    return 0


def _differ(before: types.FunctionType, after: types.FunctionType) -> bool:
    if before.__code__ != after.__code__:
        return True
    kept = (before.__defaults__, before.__kwdefaults__), (after.__defaults__, after.__kwdefaults__)
    return _shown(kept[0]) != _shown(kept[1])


def _shown(value: object) -> str:
    """Its text without places in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


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
        if " at 0x" in repr(before) and name not in kernels:
            moved += _move_inside(before, after) if _plain(before) is None and not isinstance(before, type) else 0
            continue
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
