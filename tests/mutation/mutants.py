"""Small mistakes in a module: every place where one can be made, and the module with that one made.

A mutant is one change of one node of the syntax tree: an operator, a comparison, a constant, a condition, a call that
is left out, two arguments that change places, a statement that is left out. Left alone is what no test of behaviour can
or should tell: texts (messages have tests of their own), annotations, docstrings, decorators, bodies of protocols, the
arguments of errors, calls that only change a type, and the order of arguments where it does not matter.

A mutant's name is a digest of where it stands (function, the n-th of its kind) and of what it changes, not of its line,
so that it keeps its name while other parts of the module are edited.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}

Replacement = Callable[[ast.AST], ast.AST]


@dataclass(frozen=True)
class Mutant:
    """One change: where, what kind, and the source of the node before and after."""

    name: str
    module: str
    function: str
    line: int
    kind: str
    before: str
    after: str
    path: tuple[tuple[str, int | None], ...]
    """Fields and places that lead from the module to the node."""

    def __str__(self) -> str:
        return f"{self.name} {self.module}:{self.line} {self.function}: {self.kind}: {self.before} → {self.after}"


def mutants_of(module: str, source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its source."""
    tree = ast.parse(source)
    seen: Counter[tuple[str, str, str, str]] = Counter()
    found = []
    for path, node, function in _places(tree, (), ""):
        for kind, after in _changes(node):
            before_text, after_text = _text(node), _text(after)
            if before_text == after_text:
                continue
            key = (function, kind, before_text, after_text)
            digest = hashlib.sha256(repr((module, key, seen[key])).encode()).hexdigest()[:10]
            seen[key] += 1
            found.append(
                Mutant(
                    digest,
                    module,
                    function or "module",
                    getattr(node, "lineno", 0),
                    kind,
                    before_text,
                    after_text,
                    path,
                )
            )
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The module's syntax tree with that one change; every node keeps its line."""
    tree = ast.parse(source)
    parent: ast.AST = tree
    for field, place in mutant.path[:-1]:
        parent = _child(parent, field, place)
    field, place = mutant.path[-1]
    node = _child(parent, field, place)
    after = next(after for kind, after in _changes(node) if (kind, _text(after)) == (mutant.kind, mutant.after))
    ast.copy_location(after, node)
    if place is None:
        setattr(parent, field, after)
    else:
        getattr(parent, field)[place] = after
    return ast.fix_missing_locations(tree)


def _child(parent: ast.AST, field: str, place: int | None) -> ast.AST:
    found = getattr(parent, field)
    return found if place is None else found[place]


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {_text(node.test)}"
    return " ".join(ast.unparse(node).split())[:160]


def _places(
    node: ast.AST, path: tuple[tuple[str, int | None], ...], function: str
) -> Iterator[tuple[tuple[tuple[str, int | None], ...], ast.AST, str]]:
    """Every expression and statement that may be changed, with the path to it and the function it stands in."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    for field, value in ast.iter_fields(node):
        if field in _LEFT_ALONE or (field == "args" and _is_error(node)) or (field == "keywords" and _is_error(node)):
            continue
        children: list[tuple[int | None, ast.AST]] = [(None, value)] if isinstance(value, ast.AST) else []
        if isinstance(value, list):
            children = [(place, child) for place, child in enumerate(value) if isinstance(child, ast.AST)]
        for place, child in children:
            if _is_left_alone(child):
                continue
            inside = (*path, (field, place))
            if isinstance(child, ast.expr | ast.stmt):
                yield inside, child, function
            yield from _places(child, inside, function)


_LEFT_ALONE = {"annotation", "returns", "decorator_list", "bases", "type_params", "ctx", "op", "ops"}


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return any("Protocol" in ast.unparse(base) for base in node.bases)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring, or `...`
    if isinstance(node, ast.Assign) and any(
        isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets
    ):
        return True
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _PLUMBING:
        return True
    return isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom)


_PLUMBING = {"field", "TypeVar", "NewType", "cast", "lru_cache", "option", "ParamSpec"}


def _is_error(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Error", "Problem"))


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Kind and changed copy."""
    if isinstance(node, ast.stmt):
        yield from _changed_statements(node)
    elif isinstance(node, ast.Call):
        yield from _changed_calls(node)
    elif isinstance(node, ast.expr):
        yield from _changed_expressions(node)


def _changed_expressions(node: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text(node):
        yield "operator", _with(node, op=ARITHMETIC[type(node.op)]())
    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                yield "comparison", _with(node, ops=[*node.ops[:place], other(), *node.ops[place + 1 :]])
    if isinstance(node, ast.BoolOp):
        yield "condition", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield "operator", deepcopy(node.operand)
    if isinstance(node, ast.IfExp):
        yield "condition", _with(node, test=ast.UnaryOp(ast.Not(), deepcopy(node.test)))
    if isinstance(node, ast.Constant):
        yield from _changed_constants(node)


def _changed_constants(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)
        if node.value > 0:
            yield "constant", ast.Constant(node.value - 1)
    elif isinstance(node.value, float):
        yield "constant", ast.Constant(node.value + 1.0)


def _changed_calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    if _is_error(node):
        return
    plain = [place for place, part in enumerate(node.args) if not isinstance(part, ast.Starred)]
    called = ast.unparse(node.func).rpartition(".")[2]
    if plain[:1] == [0] and not called[0].isupper() and called not in _CONVERSIONS:
        yield "dropped call", deepcopy(node.args[0])
    if plain[:2] == [0, 1] and called not in _SYMMETRIC:
        yield "swapped arguments", _with(node, args=[node.args[1], node.args[0], *node.args[2:]])


_CONVERSIONS = {"int", "float", "bool", "str", "bytes", "tuple", "list", "set", "frozenset", "dict", "cast", "iter"}
_SYMMETRIC = {"min", "max", "minimum", "maximum", "gcd", "logaddexp", "suppress", "isdisjoint"}


def _changed_statements(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.If | ast.While):
        yield "negated condition", _with(node, test=ast.UnaryOp(ast.Not(), deepcopy(node.test)))
    if isinstance(node, ast.AugAssign):
        if type(node.op) in ARITHMETIC:
            yield "operator", _with(node, op=ARITHMETIC[type(node.op)]())
        yield "dropped statement", ast.Pass()
    if isinstance(node, ast.Raise | ast.Continue | ast.Break):
        yield "dropped statement", ast.Pass()
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "dropped statement", ast.Pass()
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript):
        yield "dropped statement", ast.Pass()
    if isinstance(node, ast.Return) and node.value is not None and not _is_nothing(node.value):
        yield "dropped statement", ast.Return(ast.Constant(None))


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.BinOp) -> bool:
    """Whether texts are put together: such a change is one of words, or fails at once."""
    parts = (node.left, node.right)
    return any(isinstance(part, ast.JoinedStr) or _is_string(part) for part in parts)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _with(node: ast.AST, **changes: object) -> ast.AST:
    copy = deepcopy(node)
    for name, value in changes.items():
        setattr(copy, name, value)
    return copy
