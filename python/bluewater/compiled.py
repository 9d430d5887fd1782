"""Compiling the methods of a user's class with Numba.

The object's attributes after ``start`` become a record of fixed fields. Each method becomes a C
function of the addresses of this record and of the method's arguments. A compiled method cannot say
where it failed; the plain Python method is then called to say it.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import inspect
import re
import textwrap
import types
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bluewater import _core
from bluewater.cut import frozen
from bluewater.errors import InputError
from bluewater.own import Own, is_base, line_of, random

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

FAILED = -9.0
"""Return value of a compiled method that raised an exception."""
NOTHING = -1.0
"""Return value of a compiled method for ``None``."""

PACKET = [("len", "i8"), ("flow", "i8"), ("ecn", "i8"), ("arrived", "i8")]
"""Layout of the packet in the core's memory."""
QUEUE = [
    *((name, "i8") for name in ("packets", "bytes", "limit_packets", "limit_bytes")),
    ("rate", "i8"),
    ("mean_packet", "i8"),
    ("fits", "?"),
]
"""Layout of the queue in the core's memory."""


class Program(NamedTuple):
    """A compiled object in the form that the core takes."""

    state: bytes
    """Its initial record."""
    methods: dict[str, int]
    """The addresses of its methods."""
    timer: int | None
    """Offset of ``timer`` in the record, in bytes."""
    read: list[tuple[str, int, str]]
    """Each signal and output with its offset in bytes and its type: ``f``, ``i`` or ``b``."""
    draws: bool
    """Whether a method may draw a random number."""
    kept: object
    """Objects that must live as long as the addresses are used."""


def program(object_: Own, draw: int) -> Program:
    """The program of a started object; ``draw`` is the address of the random generator."""
    cls = type(object_)
    _numba(cls.role)
    state, texts = _state(object_)
    now = frozen(cls)
    for name in now:
        if now[name] != cls.constants_before.get(name, now[name]):
            raise _refused(
                cls,
                f"start() changes {name.rpartition('.')[2]}, which its methods read",
                "constants; what changes is an attribute of the object, as in self.NAME",
            )
    given = (tuple(sorted(each.items())) for each in (texts, now))
    made = _compiled(_Class(cls.__module__, cls.__name__, cls), state.dtype, *given, draw)
    fields = state.dtype.fields
    return Program(
        state=state.tobytes(),
        methods={name: each.address for name, each in made.methods.items()},
        timer=fields["timer"][1] if "timer" in fields else None,
        read=[(name, fields[name][1], fields[name][0].kind) for name in _read_of(cls)],
        draws=made.draws,
        kept=made,
    )


def _read_of(cls: type[Own]) -> list[str]:
    """The names of the attributes that the core reads."""
    return list(dict.fromkeys([*cls.outputs, *cls.signals]))


def restore(object_: Own, state: bytes) -> None:
    """Copies a record's state into the object, so that the plain methods continue from there."""
    dtype = _state(object_)[0].dtype
    record = np.frombuffer(state, dtype)[0].copy()
    for name in dtype.names:
        value = record[name]
        setattr(object_, name, value if value.ndim else value.item())


def _state(object_: Own) -> tuple[Any, dict[str, str]]:
    """An object's numbers and arrays as a record, and its constant texts."""
    fields: dict[str, Any] = {"_": np.zeros((), "i8")}  # an empty record has no address
    texts = {}
    cls: Any = type(object_)
    read = set(_read_of(cls))
    for name in _used(cls):
        value = getattr(object_, name, None)
        array = np.asarray(value)
        if name in read and (isinstance(value, str) or array.ndim):
            kind = "a text" if isinstance(value, str) else "an array"
            raise _refused(cls, f"self.{name} is {kind}", "one number for a signal or an output")
        if isinstance(value, str):
            texts[name] = value
        elif array.dtype.kind not in "bif" or isinstance(value, list | tuple):
            raise _refused(
                cls,
                f"self.{name} is {'not there' if value is None else type(value).__name__}",
                "after start() an int, float, bool, or NumPy array of them",
            )
        else:
            form = array.dtype if array.ndim else {"b": "?", "i": "i8", "f": "f8"}[array.dtype.kind]
            fields[name] = array.astype(form)
    dtype = np.dtype([(name, each.dtype, each.shape) for name, each in fields.items()], align=True)
    state = np.zeros((), dtype)
    for name, each in fields.items():
        state[name] = each
    return state, texts


_Texts = tuple[tuple[str, str], ...]


class _Made(NamedTuple):
    methods: dict[str, Any]
    draws: bool


@dataclass(frozen=True)
class _Class:
    """A class by its names; those of several executions of one text are equal."""

    module: str
    name: str
    cls: type[Own] = field(compare=False)


@lru_cache(maxsize=64)
def _compiled(
    of: _Class,
    state: Any,
    texts: _Texts,
    constants: _Texts,  # noqa: ARG001
    draw: int,
) -> _Made:
    """Compiles the methods of a class for a record of this layout."""
    numba = _numba()
    cls, methods = of.cls, _methods(of.cls)
    spaces = _Spaces(cls, ctypes.CFUNCTYPE(ctypes.c_double)(draw))
    for function in methods.values():
        spaces.of(function)
    for function in methods.values():
        tree = _Rewriting(_tree(function), methods.keys(), dict(texts)).made
        made = numba.njit(spaces.executed(function, tree), boundscheck=True)
        for space in spaces.made.values():
            space[tree.name] = made
    events = [name for name in cls.methods if name in methods]
    entries = {name: _entry(cls, name, spaces.of(methods[name]), state) for name in events}
    return _Made(entries, spaces.draws)


class _Spaces:
    """The globals of the text's modules for compiled code: each module keeps its own."""

    def __init__(self, cls: type[Own], generator: Any) -> None:
        self.root = cls.__module__.partition(".")[0]
        self.generator = generator
        self.draws = False
        self.made: dict[int, dict[str, Any]] = {}

    def of(self, function: types.FunctionType) -> dict[str, Any]:
        """The globals of a function, in which the text's own functions are compiled."""
        names = function.__globals__
        space = self.made.get(id(names))
        if space is not None:
            return space
        space = self.made[id(names)] = dict(names)
        space["_number"] = _overloads()
        for name, each in names.items():
            if each is random:
                space[name], self.draws = self.generator, True
            elif isinstance(each, types.FunctionType) and self._is_own(each):
                space[name] = _numba().njit(self._moved(each), boundscheck=True)
        return space

    def _is_own(self, function: types.FunctionType) -> bool:
        return (function.__module__ or "").partition(".")[0] == self.root

    def _moved(self, function: types.FunctionType) -> types.FunctionType:
        """A copy of a function with other globals, which checks what it assigns."""
        space = self.of(function)
        moved = types.FunctionType(function.__code__, space, argdefs=function.__defaults__)
        if function.__name__ != "<lambda>":
            tree = _tree(function)
            if any(isinstance(each, ast.Attribute) and _stored(each) for each in ast.walk(tree)):
                moved = self.executed(function, _Rewriting(tree, (), {}).made)
                moved.__defaults__ = function.__defaults__
        moved.__kwdefaults__ = function.__kwdefaults__
        return moved

    def executed(self, function: types.FunctionType, tree: ast.FunctionDef) -> types.FunctionType:
        """The function of a rewritten syntax tree."""
        space = self.of(function)
        space |= {name: _kept(name.removeprefix(_KEPT)) for name in _kept_in(tree)}
        exec(compile(ast.Module([tree], []), function.__code__.co_filename, "exec"), space)
        return space.pop(tree.name)  # type: ignore[no-any-return]


def _kept_in(tree: ast.AST) -> list[str]:
    """The checks of assignments that a rewritten function calls."""
    names = (each.id for each in ast.walk(tree) if isinstance(each, ast.Name))
    return [name for name in names if name.startswith(_KEPT)]


def _entry(cls: type[Own], name: str, space: dict[str, Any], state: Any) -> Any:
    """Compiles one method as a C function of addresses."""
    numba = _numba()
    given = cls.methods[name]
    build = {
        ("now", "packet", "queue"): _with_packet,
        ("now", "queue"): _without,
        ("now",): _with_time,
    }.get(given, _with_event)
    event = _core.events().get(name, PACKET)
    forms = [state, np.dtype(event, align=True), np.dtype(QUEUE, align=True)]
    addresses = [numba.types.CPointer(numba.from_dtype(form)) for form in forms]
    entry = build(space[_global(name)], numba.carray, space["_number"])
    try:
        return numba.cfunc(numba.types.float64(*addresses, numba.types.int64))(entry)
    except numba.core.errors.NumbaError as error:
        raise _refused(cls, f"{name}: {_said(error)}") from error


def _with_packet(method: Any, at: Any, number: Any) -> Callable[..., float]:
    def entry(state: Any, packet: Any, queue: Any, now: int) -> float:
        try:
            answer = method(at(state, 1)[0], now, at(packet, 1)[0], at(queue, 1)[0])
        except Exception:  # the plain method will say what is wrong
            return FAILED
        return number(answer)  # type: ignore[no-any-return]

    return entry


def _without(method: Any, at: Any, number: Any) -> Callable[..., float]:
    def entry(state: Any, _: Any, queue: Any, now: int) -> float:
        try:
            answer = method(at(state, 1)[0], now, at(queue, 1)[0])
        except Exception:
            return FAILED
        return number(answer)  # type: ignore[no-any-return]

    return entry


def _with_event(method: Any, at: Any, number: Any) -> Callable[..., float]:
    def entry(state: Any, event: Any, _: Any, now: int) -> float:  # noqa: ARG001
        try:
            answer = method(at(state, 1)[0], at(event, 1)[0])
        except Exception:
            return FAILED
        return number(answer)  # type: ignore[no-any-return]

    return entry


def _with_time(method: Any, at: Any, number: Any) -> Callable[..., float]:
    def entry(state: Any, _: Any, __: Any, now: int) -> float:
        try:
            answer = method(at(state, 1)[0], now)
        except Exception:
            return FAILED
        return number(answer)  # type: ignore[no-any-return]

    return entry


_KEPT = "_kept_"
"""What the names of checks of assignments begin with; the attribute follows."""


def _rank(kind: Any) -> int:
    """The place of a type among those of which each holds the values of those before it."""
    kinds = _numba().types
    order = (kinds.Boolean, kinds.Integer, kinds.Float)
    return next((i for i, each in enumerate(order) if isinstance(kind, each)), len(order))


@lru_cache
def _kept(name: str) -> Any:
    """A compiled helper that checks each assignment to an attribute."""
    numba = _numba()
    kinds, wrong = numba.types, numba.core.errors.TypingError

    def kept(object_: Any, old: Any, new: Any) -> Any: ...

    def kept_of(object_: Any, old: Any, new: Any) -> Callable[[Any, Any, Any], Any]:
        if isinstance(object_, kinds.Record) and "_" not in object_.fields:
            raise wrong(f"{name} is a field of an argument, which a method only reads")
        if isinstance(old, kinds.Array):
            raise wrong(f"an array keeps its shape: assign its elements with self.{name}[:] = …")
        if _rank(new) > _rank(old):
            raise wrong(f"self.{name}, which start() made {old}, becomes {new}")
        return lambda object_, old, new: new  # noqa: ARG005

    numba.extending.overload(kept, strict=False)(kept_of)
    return kept


@lru_cache(maxsize=1)
def _overloads() -> Any:
    """A compiled helper that makes answers numbers."""
    numba = _numba()
    kinds, wrong = numba.types, numba.core.errors.TypingError

    def number(answer: Any) -> Any: ...

    def number_of(answer: Any) -> Callable[[Any], float]:
        if isinstance(answer, kinds.NoneType):
            return lambda answer: NOTHING  # noqa: ARG005
        if isinstance(answer, kinds.Optional):
            return lambda answer: NOTHING if answer is None else answer
        if not isinstance(answer, kinds.Boolean | kinds.Integer | kinds.Float):
            raise wrong(f"it gives {answer}, but must give a number or None")
        return lambda answer: answer

    numba.extending.overload(number, strict=False)(number_of)
    return number


def _methods(cls: type[Own]) -> dict[str, types.FunctionType]:
    """The methods that may be called during a run."""
    own = (each for each in cls.__mro__ if each is not object and not is_base(each))
    names = {name for each in own for name in vars(each)}
    found = {name: inspect.getattr_static(cls, name) for name in sorted(names - {"start"})}
    return {name: each for name, each in found.items() if isinstance(each, types.FunctionType)}


_PLAIN = "a method without decorators: def NAME(self, …), called as self.NAME(…)"


def _place(found: Any) -> str:
    """File and line of what a name of a class is bound to."""
    inner = (getattr(found, name, None) for name in ("fget", "func", "__func__"))
    function = next((each for each in inner if each is not None), found)
    return f"{line_of(function)}: " if isinstance(function, types.FunctionType) else ""


@lru_cache(maxsize=64)
def _used(cls: type[Own]) -> list[str]:
    """The attributes that its methods or the core read or write, and its timer."""
    methods = _methods(cls)
    used = {*_read_of(cls), *(["timer"] if "on_timer" in methods else [])}
    for function in methods.values():
        tree = _tree(function)
        if tree.decorator_list:
            what = ast.unparse(tree.decorator_list[0])
            place = line_of(inspect.unwrap(function))
            raise _refused(cls, f"{place}: the decorator @{what}", _PLAIN)
        used |= {_attribute(each, tree.args.args[0].arg) for each in ast.walk(tree)}
    for name in used:
        each = inspect.getattr_static(cls, name, None)
        if isinstance(each, property | functools.cached_property | staticmethod | classmethod):
            raise _refused(cls, f"{_place(each)}{name} is a {type(each).__name__}", _PLAIN)
    return sorted(used - methods.keys() - {""})


def _attribute(node: ast.AST, own: str) -> str:
    """The object's attribute that a node reads, if the method calls the object ``own``."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return ""
    return node.attr if node.value.id == own else ""


def _tree(function: types.FunctionType) -> ast.FunctionDef:
    """The syntax tree of a method, with its line numbers in the file."""
    function = inspect.unwrap(function)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise InputError(f"{line_of(function)}: a lambda cannot be compiled", allowed=_PLAIN)
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    holder = function.__qualname__.rpartition(".")[0].rpartition(".")[2].lstrip("_")
    for node in ast.walk(tree):  # names such as __gain are those of the class alone
        if isinstance(node, ast.Attribute) and node.attr[:2] == "__" and node.attr[-2:] != "__":
            node.attr = f"_{holder}{node.attr}"
    return tree


def _global(method: str) -> str:
    return f"_method_{method}"


class _Rewriting(ast.NodeTransformer):
    """Rewrites a method into a function that Numba can compile.

    Calls of other methods become calls of functions. Attributes that hold a text become that text.
    A check precedes each assignment to an attribute.
    """

    def __init__(
        self, tree: ast.FunctionDef, methods: Collection[str], texts: Mapping[str, str]
    ) -> None:
        self.own = tree.args.args[0].arg if methods else ""
        self.methods = methods
        self.texts = texts
        self.values = 0
        tree.name, tree.decorator_list, tree.returns = _global(tree.name), [], None
        self.made = ast.fix_missing_locations(self.visit(tree))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        text = self.texts.get(_attribute(node, self.own))
        if text is not None and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Constant(text), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func
        if (method := _attribute(called, self.own)) in self.methods:
            node.func = ast.copy_location(_name(_global(method)), called)
            node.args.insert(0, ast.copy_location(_name(self.own), called))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not _is_attribute(node.target):
            return node
        read = ast.copy_location(_read(node.target), node)
        value = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return self._assigned(node.target, value, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | list[ast.stmt]:
        if not _is_attribute(node.target) or node.value is None:
            return self.generic_visit(node)
        return self._assigned(node.target, self.visit(node.value), node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        targets = [each for target in node.targets for each in ast.walk(target)]
        if not any(_is_attribute(each) and _stored(each) for each in targets):
            return node
        first = self._value()
        made: list[ast.stmt] = [_at(node, ast.Assign([_name(first, ast.Store())], node.value))]
        return made + [s for each in node.targets for s in self._assigned(each, _name(first), node)]

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if any(_is_attribute(each) and _stored(each) for each in ast.walk(node.target)):
            value = self._value()
            node.body = [*self._assigned(node.target, _name(value), node), *node.body]
            node.target = ast.copy_location(_name(value, ast.Store()), node.target)
        return node

    def _assigned(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        """The statements that assign the value to ``target``."""
        if isinstance(target, ast.Tuple | ast.List):
            parts = [self._value() for _ in target.elts]
            unpacked = ast.Tuple([_name(part, ast.Store()) for part in parts], ast.Store())
            made: list[ast.stmt] = [_at(node, ast.Assign([unpacked], value))]
            for each, part in zip(target.elts, parts, strict=True):
                made += self._assigned(each, _name(part), node)
            return made
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            given = [_name(target.value.id), _read(target), value]
            value = ast.Call(_name(f"{_KEPT}{target.attr}"), given, [])
        return [_at(node, ast.Assign([target], value))]

    def _value(self) -> str:
        self.values += 1
        return f"_value_{self.values}"


def _is_attribute(node: ast.AST) -> bool:
    """Whether a node is an attribute of something with a name."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _name(name: str, how: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(name, how or ast.Load())


def _read(target: ast.expr) -> ast.expr:
    """The target of an assignment as an expression that reads it."""
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(target.value, target.attr, ast.Load())


def _at(node: ast.stmt, made: ast.stmt) -> ast.stmt:
    return ast.copy_location(made, node)


def _numba(key: str = "aqm") -> Any:
    """The modules of Numba, which is optional."""
    try:
        import numba  # noqa: PLC0415
        import numba.extending  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "a class with compiled = True needs Numba",
            key=key,
            hint="pip install 'bluewater[numba]', or leave out compiled = True to run it in Python",
        ) from error
    return numba


def _refused(cls: type[Own], problem: str, allowed: str | None = None) -> InputError:
    return InputError(
        f"{cls.__name__} cannot be compiled: {problem}",
        key=cls.role,
        allowed=allowed,
        hint="compiled = False runs it in Python",
    )


def _said(error: Exception) -> str:
    """Numba's message about the user's code, which precedes the one about this module."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # coloured if colorama is installed
    at = re.search(r'File "<(\S+) \w+>", line (\d+)', text)
    ours = re.search(r"TypingError: (.+)", text)
    shown = [
        line for line in text.splitlines() if line.strip() and not line.startswith("Failed in")
    ]
    said = ours[1] if ours else " ".join(line.strip() for line in shown[:2])
    return f"{at[1]}:{at[2]}: {said}" if at else said
