"""Cuts a class out of its file, and compares the class with what the cut text gives."""

from __future__ import annotations

import ast
import dis
import pickle
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError
from bluewater.sources import is_executed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST = 60
"""Most characters of a value in a message."""


def closure(source: str, name: str, role: str) -> str:
    """The statements at a file's top level that the class ``name`` needs, in the file's order."""
    body = ast.parse(source).body
    homes: dict[str, list[ast.stmt]] = {}
    for node in body:
        for bound in _bound(node):
            homes.setdefault(bound, []).append(node)
    if name not in homes:
        raise InputError(
            f"the class {name} is not at the top level of its file or cell",
            key=role,
            allowed="a class at the top level of a file",
        )
    wanted, open_ = {id(node) for node in homes.get("*", ())}, [name]
    known = set()
    while open_:
        bound = open_.pop()
        if bound in known:
            continue
        known.add(bound)
        for node in homes.get(bound, ()):
            if id(node) not in wanted:
                wanted.add(id(node))
                open_ += used(compile(ast.Module([node], []), "<cut>", "exec", dont_inherit=True))
    return "\n\n".join(_text_of(source, each) for each in body if id(each) in wanted) + "\n"


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement defines or changes, if it is of those that are taken."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        return ["*" if future else (each.asname or each.name).split(".")[0] for each in node.names]
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Try):
        inner = [*node.body, *node.orelse, *(one for each in node.handlers for one in each.body)]
        imports = any(isinstance(each, ast.Import | ast.ImportFrom) for each in node.body)
        return [bound for each in inner for bound in _bound(each)] if imports else []
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [bound for target in targets for bound in _changed(target)]


def _changed(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return [bound for each in target.elts for bound in _changed(each)]
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    return [target.id] if isinstance(target, ast.Name) else []


def _text_of(source: str, node: ast.stmt) -> str:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def used(code: CodeType) -> list[str]:
    """The names outside of it that a code reads."""
    read = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    names = [each.argval for each in dis.get_instructions(code) if each.opname in read]
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in used(each)]
    return list(dict.fromkeys([*names, *inner]))


class DifferenceError(Exception):
    """A name whose value is another in the text; ``None`` in place of a text: it is not there."""

    def __init__(self, name: str, live: Any, again: str | None) -> None:
        super().__init__(name)
        self.name = name
        self.live = _shown(live)
        self.again = again
        self.is_value = not isinstance(live, FunctionType | type | ModuleType)

    def told(self, cls: type, role: str) -> InputError:
        """The message for the user."""
        said = "has none" if self.again is None else f"gives {self.again}"
        declared = self.name.partition("[")[0].rpartition(".")[2]
        parameter = f"make {declared} a parameter of the class, as in `{declared} = number(…)`, or "
        return InputError(
            f"{self.name} is {self.live}, but the text of the class {cls.__name__} {said}: "
            "a run is named by its text, and made from it",
            key=role,
            hint=f"{parameter if self.is_value else ''}put the class into a file of its own",
        )


def compare(live: type, again: type) -> None:
    """Compares a class and all that it reaches with the one that its text gives.

    Raises:
        DifferenceError: A value is not the same.
    """
    _Comparison().values(live.__name__, live, again)


def _shown(value: Any) -> str:
    if isinstance(value, FunctionType | type | ModuleType):
        return f"another {type(value).__name__}".replace("another type", "another class")
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class _Comparison:
    def __init__(self) -> None:
        self.seen: set[tuple[int, int]] = set()

    def values(self, name: str, live: Any, again: Any) -> None:
        """Compares two values of one name."""
        if live is again or (id(live), id(again)) in self.seen:
            return
        self.seen.add((id(live), id(again)))
        if type(live).__name__ != type(again).__name__:
            raise DifferenceError(name, live, _shown(again))
        if isinstance(live, type):
            self.classes(name, live, again)
        elif isinstance(live, FunctionType):
            self.functions(name, live, again)
        elif isinstance(live, staticmethod | classmethod):
            self.values(name, live.__func__, again.__func__)
        elif isinstance(live, property):
            for each in ("fget", "fset", "fdel"):
                self.values(name, getattr(live, each), getattr(again, each))
        elif isinstance(live, ModuleType):
            if is_executed(again.__name__):
                self.tables(name, vars(live), vars(again), vars(again))
        elif isinstance(live, list | tuple | dict):
            self.containers(name, live, again)
        else:
            self.plain(name, live, again)

    def containers(self, name: str, live: Any, again: Any) -> None:
        if isinstance(live, dict):
            self.same(name, live, again, live.keys() == again.keys())
        else:
            self.same(name, live, again, len(live) == len(again))
        for key in live if isinstance(live, dict) else range(len(live)):
            self.values(f"{name}[{key!r}]", live[key], again[key])

    def same(self, name: str, live: Any, again: Any, holds: bool) -> None:
        if not holds:
            raise DifferenceError(name, live, _shown(again))

    def plain(self, name: str, live: Any, again: Any) -> None:
        """Compares values of no kind in particular; what cannot be compared counts as the same."""
        if isinstance(live, int | float | complex | str | bytes):
            self.same(name, live, again, repr(live) == repr(again))
        elif isinstance(live, BuiltinFunctionType | set | frozenset):
            self.same(name, live, again, live == again)
        elif is_executed(type(again).__module__) and hasattr(live, "__dict__"):
            self.values(f"type({name})", type(live), type(again))
            self.values(name, vars(live), vars(again))
        else:
            try:
                holds = pickle.dumps(live) == pickle.dumps(again)
            except Exception:
                return
            self.same(name, live, again, holds)

    def tables(
        self, name: str, live: Mapping[str, Any], again: Mapping[str, Any], keys: Any
    ) -> None:
        """Compares attributes."""
        for key in keys:
            if key == "_abc_impl" or (key[:2] == "__" and not _is_method(live.get(key))):
                continue
            place = f"{name}.{key}"
            if key not in live:
                raise DifferenceError(place, None, _shown(again[key]))
            if key not in again:
                raise DifferenceError(place, live[key], None)
            self.values(place, live[key], again[key])

    def classes(self, name: str, live: type, again: type) -> None:
        if not is_executed(again.__module__):
            return self.same(name, live, again, holds=False)
        for base, other in zip(live.__bases__, again.__bases__, strict=False):
            self.values(base.__name__, base, other)
        keys = dict.fromkeys([*vars(live), *vars(again)])
        return self.tables(name, vars(live), vars(again), keys)

    def functions(self, name: str, live: FunctionType, again: FunctionType) -> None:
        self.same(name, live, again, _same_code(live.__code__, again.__code__))
        self.values(name, live.__defaults__, again.__defaults__)
        self.values(name, live.__kwdefaults__, again.__kwdefaults__)
        for one, other in zip(live.__closure__ or (), again.__closure__ or (), strict=False):
            self.values(name, one.cell_contents, other.cell_contents)
        for each in used(live.__code__):
            if each in live.__globals__:
                if each not in again.__globals__:
                    if not each.startswith("@"):
                        raise DifferenceError(each, live.__globals__[each], None)
                    continue
                self.values(each, live.__globals__[each], again.__globals__[each])


def _is_method(value: Any) -> bool:
    return isinstance(value, FunctionType)


def _same_code(live: CodeType, again: CodeType) -> bool:
    """Whether two codes do the same; pytest rewrites ``assert``."""
    if "@pytest_ar" in live.co_names:
        return True
    pairs = zip(live.co_consts, again.co_consts, strict=False)
    return (
        _steps(live) == _steps(again)
        and len(live.co_consts) == len(again.co_consts)
        and all(_same_constant(*pair) for pair in pairs)
    )


def _steps(code: CodeType) -> list[tuple[str, str]]:
    """The instructions of a code.

    A notebook compiles its statements one by one. Python then calls what a module has by other
    instructions than in a file that imports the module, and jumps have other lengths.
    """
    return [
        (
            each.opname.replace("LOAD_METHOD", "LOAD_ATTR"),
            "" if each.opcode in _JUMPS or isinstance(each.argval, CodeType) else repr(each.argval),
        )
        for each in dis.get_instructions(code)
        if each.opname not in ("PUSH_NULL", "PRECALL", "NOP", "EXTENDED_ARG", "COPY_FREE_VARS")
    ]


_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])


def _same_constant(live: Any, again: Any) -> bool:
    if isinstance(live, CodeType) and isinstance(again, CodeType):
        return _same_code(live, again)
    return repr(live) == repr(again)


def frozen(cls: type) -> dict[str, str]:
    """The values of globals that a class's methods read, as texts, by name."""
    found: dict[str, str] = {}
    methods = (
        each
        for base in cls.__mro__
        if is_executed(base.__module__)
        for name, each in vars(base).items()
        if isinstance(each, FunctionType) and name != "start"
    )
    for name, value in _read_by(methods):
        if isinstance(value, int | float | complex | str | bytes | tuple | list | dict | set):
            found[name] = repr(value)
        elif hasattr(value, "tobytes"):
            found[name] = f"{value.dtype} {value.shape} {value.tobytes()!r}"
    return found


def _read_by(functions: Iterator[FunctionType]) -> Iterator[tuple[str, Any]]:
    """Every global that functions and those that they call read, by module and name."""
    open_, known = list(functions), set()
    while open_:
        function = open_.pop()
        if id(function) in known:
            continue
        known.add(id(function))
        for name in used(function.__code__):
            value = function.__globals__.get(name)
            if isinstance(value, FunctionType) and is_executed(value.__module__):
                open_.append(value)
            else:
                yield f"{function.__module__}.{name}", value
