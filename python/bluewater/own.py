"""Users' classes in Python: their declarations, their source text, their errors.

There are three kinds: queue disciplines (:class:`bluewater.aqm.Aqm`), congestion controllers
(:class:`bluewater.control.Controller`) and autorate algorithms
(:class:`bluewater.autorate.Autorate`).
"""

from __future__ import annotations

import dis
import inspect
import linecache
import sys
import tomllib
import traceback
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

import tomli_w

from bluewater import _core, cut, endless, sources
from bluewater.endless import EndlessError, watched
from bluewater.errors import InputError, unknown
from bluewater.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGUAGE = "python:"
"""Prefix of the name of a user's class: ``python:FILE:CLASS``."""

random = _core.random
"""Draws the next uniform number in [0, 1) of the object's own random stream; only in a method."""

NEVER = 2**63 - 1
"""A ``timer`` that never expires."""


@dataclass(frozen=True)
class Parameter:
    """A parameter as a class declares it; made by :func:`number` and its siblings."""

    kind: str
    default: str
    doc: str
    low: str | None = None
    high: str | None = None
    words: tuple[str, ...] = ()
    source: str = ""

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if self.words:
            return " | ".join(self.words)
        if self.low is None and self.high is None:
            return f"any {self.kind}"
        if self.low is None or self.high is None:
            return f"at least {self.low}" if self.high is None else f"at most {self.high}"
        return f"{self.low} … {self.high}"

    def read(self, text: str) -> tuple[Any, str]:
        """Parses a text; returns the value and its canonical text. Raises ``ValueError``."""
        value, canonical = _read(self.kind, text.strip(), self.words)
        if self.words:
            return value, canonical
        for end, sign in ((self.low, 1), (self.high, -1)):
            if end is not None and sign * (value - _read(self.kind, end, ())[0]) < 0:
                raise ValueError(text)
        return value, canonical


def _read(kind: str, text: str, words: tuple[str, ...]) -> tuple[Any, str]:
    if kind == "choice":
        if text not in words:
            raise ValueError(text)
        return text, text
    if kind in ("duration", "rate"):
        return _core.quantity(kind, text)
    if kind == "integer":
        return int(text), str(int(text))
    if kind == "number":
        value = float(text)
        if value - value != 0:
            raise ValueError(text)
        return value, repr(value)
    return {"true": (True, "true"), "false": (False, "false")}[text]


def number(
    default: float,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    source: str = "",
) -> Any:
    """Declares a parameter that is a real number."""
    return Parameter("number", repr(float(default)), doc, _text(low), _text(high), source=source)


def integer(
    default: int, doc: str, *, low: int | None = None, high: int | None = None, source: str = ""
) -> Any:
    """Declares a parameter that is a whole number."""
    return Parameter("integer", str(default), doc, _text(low), _text(high), source=source)


def duration(
    default: str, doc: str, *, low: str | None = None, high: str | None = None, source: str = ""
) -> Any:
    """Declares a time with its unit, such as ``"100ms"``; methods see whole nanoseconds."""
    return Parameter("duration", default, doc, low, high, source=source)


def rate(
    default: str, doc: str, *, low: str | None = None, high: str | None = None, source: str = ""
) -> Any:
    """Declares a rate with its unit, such as ``"10mbit"``; methods see bit/s."""
    return Parameter("rate", default, doc, low, high, source=source)


def flag(default: bool, doc: str, *, source: str = "") -> Any:
    """Declares a parameter that is true or false."""
    return Parameter("flag", str(default).lower(), doc, words=("true", "false"), source=source)


def choice(default: str, doc: str, words: tuple[str, ...], *, source: str = "") -> Any:
    """Declares a parameter that is one of the given words."""
    return Parameter("choice", default, doc, words=tuple(words), source=source)


def _text(end: float | None) -> str | None:
    return None if end is None else repr(end)


class Own:
    """Common base of every user's class."""

    role: ClassVar[str]
    """The key that names it in a scenario: one of :data:`PLACES`."""
    methods: ClassVar[Mapping[str, tuple[str, ...]]]
    """The methods that the core calls, with their arguments."""
    shown: ClassVar[tuple[str, ...]]
    """The classes of these arguments, except numbers."""
    outputs: ClassVar[tuple[str, ...]] = ()
    """The attributes that the core reads after each call, beside ``timer``."""
    signals: ClassVar[Mapping[str, tuple[str, str]]] = {}
    compiled: ClassVar[bool] = False
    constants_before: ClassVar[Mapping[str, str]] = {}
    """Of a compiled class, the globals that its methods read, before any object was made."""
    timer: int = NEVER


class OwnError(InputError):
    """A method of a user's class failed; ``cause`` is its exception, ``hint`` its place."""


_BASES = {
    "aqm": ("bluewater.aqm", "Aqm"),
    "transport": ("bluewater.control", "Controller"),
    "algorithm": ("bluewater.autorate", "Autorate"),
}
PLACES = {"aqm": "queue", "transport": "traffic", "algorithm": "autorate"}
"""The keys of a scenario that name classes, each with the list whose entries have it."""
_BUILT_IN = Path(__file__).parent / "autorates"
"""The folder of the autorate algorithms that come with Bluewater."""


def base(role: str) -> type[Own]:
    """The base of the classes that a key of a scenario names."""
    module, name = _BASES[role]
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def is_base(cls: type) -> bool:
    """Whether a class is one of Bluewater's bases, not a user's."""
    return cls.__module__ in {module for module, _ in _BASES.values()} | {__name__}


def parameters(cls: type[Own]) -> dict[str, Parameter]:
    """The parameters of a class, in the order of declaration."""
    names = dict.fromkeys(name for each in reversed(cls.__mro__) for name in vars(each))
    found = {name: getattr(cls, name) for name in names}
    return {name: each for name, each in found.items() if isinstance(each, Parameter)}


def _space(code: str, file: str, role: str, folder: Path | None = None) -> dict[str, Any]:
    """Executes a file's text; returns the names that it defines."""
    try:
        return sources.execute(code, file, folder)
    except SyntaxError as error:
        inner = error.filename or ""
        where = _name_of(inner) if inner.startswith("<") else file
        raise InputError(f"{where}:{error.lineno}: {error.msg}", key=role) from error
    except (Exception, SystemExit) as error:
        raise InputError(f"{_place(error, file)}: {_said(error)}", key=role) from error


def contained(code: str, file: str, role: str, folder: Path) -> str:
    """A file's text with the modules beside it that it imports."""
    sources.forget()
    _space(code, file, role, folder)
    whole = sources.whole(code)
    sources.found_in(whole, folder)
    return whole


def role_of(code: str, file: str, name: str) -> str:
    """The scenario's key for the class ``name`` of a file."""
    cls = _space(code, file, "aqm").get(name)
    return cls.role if isinstance(cls, type) and issubclass(cls, Own) else "aqm"


@lru_cache(maxsize=64)
def load(code: str, file: str, name: str, role: str = "aqm") -> type[Own]:
    """The class ``name`` of a file's text, for a key of a scenario."""
    return _loaded(code, file, name, role)


def _loaded(code: str, file: str, name: str, role: str) -> type[Own]:
    """The class from a new execution of the text."""
    space = _space(code, file, role)
    kind, cls = base(role), space.get(name)
    if not (isinstance(cls, type) and issubclass(cls, kind)):
        if isinstance(cls, type) and issubclass(cls, Own):
            raise InputError(
                f"{name} in {file} is a class for `{cls.role}`, not for `{role}`",
                key=role,
                hint=f'{cls.role} = "{LANGUAGE}{file}:{name}"',
            )
        own = [
            key
            for key, each in space.items()
            if isinstance(each, type) and issubclass(each, kind) and each is not kind
        ]
        called = f"{kind.__module__}.{kind.__name__}"
        raise unknown(f"subclass of {called} in {file}:", name, own, key=role)
    _check_methods(cls)
    _check_declared(cls)
    return cls


def _check_declared(cls: type[Own]) -> None:
    """Refuses parameters and signals that cannot be what they are declared as."""
    for name in parameters(cls):
        if name in (*cls.outputs, *cls.methods, "timer", "signals", "compiled", "start"):
            raise InputError(
                f"the parameter {name} of {cls.__name__} has the name of what the class decides",
                key=cls.role,
                hint=f"give it another name, such as first_{name}",
            )
    signals: Any = cls.signals
    table = isinstance(signals, Mapping)
    for name, told in signals.items() if table else [("signals", signals)]:
        texts = (name, *told) if isinstance(told, tuple | list) else ()
        if not table or [type(each) for each in texts] != [str, str, str]:
            raise InputError(
                f"the signal {name!r} of {cls.__name__} is declared as {told!r}",
                key=cls.role,
                allowed='signals = {"NAME": ("UNIT", "MEANING")}',
            )


def _check_methods(cls: type[Own]) -> None:
    """Refuses methods that are never called, and a timer without ``on_timer``."""
    found = {
        name: each
        for base in reversed(cls.__mro__)
        if issubclass(base, Own) and not is_base(base)
        for name, each in vars(base).items()
    }
    methods = {name: each for name, each in found.items() if isinstance(each, FunctionType)}
    for name, each in found.items():
        method = getattr(each, "__func__", each)
        where = line_of(method) if isinstance(method, FunctionType) else cls.__name__
        if name.startswith("on_") and name not in cls.methods:
            error = unknown(f"method at {where}:", name, cls.methods, key=cls.role)
            if name == "on_start":
                error.hint = "did you mean 'start'?"
            raise error
        if name in cls.methods:
            if not isinstance(each, FunctionType):
                raise InputError(
                    f"{where}: {name} is a {type(each).__name__}",
                    key=cls.role,
                    allowed=f"def {name}({_given(cls, name)}):",
                )
            _check_arguments(cls, name, each)
    for method in methods.values() if "on_timer" not in methods else ():
        set_here = {
            each.argval for each in dis.get_instructions(method) if each.opname == "STORE_ATTR"
        }
        if "timer" in set_here:
            raise InputError(
                f"{line_of(method)}: {method.__name__} sets timer, but there is no on_timer",
                key=cls.role,
                hint=f"def on_timer({_given(cls, 'on_timer')}): is called when the timer expires",
            )


def _given(cls: type[Own], name: str) -> str:
    """The arguments of a method."""
    return ", ".join(("self", *cls.methods[name]))


def _check_arguments(cls: type[Own], name: str, method: FunctionType) -> None:
    """Refuses a method that does not accept the arguments of its calls."""
    given = ("self", *cls.methods[name])
    try:
        inspect.signature(method).bind(*given)
    except TypeError as error:
        raise InputError(
            f"{line_of(method)}: {name}{inspect.signature(method)} cannot be called",
            key=cls.role,
            hint=f"def {name}({_given(cls, name)}):",
        ) from error


def line_of(method: FunctionType) -> str:
    """File and line of a method."""
    code = method.__code__
    return f"{_name_of(code.co_filename)}:{code.co_firstlineno}"


def _name_of(filename: str) -> str:
    """The user's file for the name under which its text was compiled."""
    return filename[1:].rsplit(" ", 1)[0]


def canonical(
    code: str, file: str, name: str, settings: Mapping[str, str], role: str = "aqm"
) -> list[tuple[str, str]]:
    """All parameters with ``settings`` over the defaults, as canonical text."""
    return [(key, text) for key, _, text in _values(load(code, file, name, role), settings)]


def made(code: str, file: str, name: str, settings: Mapping[str, str], role: str = "aqm") -> Any:
    """Returns a function that makes objects with their parameters, not started yet.

    The text is executed anew for each run, so that no state of the class or module passes from one
    run to the next.
    """
    cls = _loaded(code, file, name, role)
    if cls.compiled:
        cls.constants_before = cut.frozen(cls)
    values = _values(cls, settings)

    def make() -> Own:
        object_ = cls()
        for key, value, _ in values:
            setattr(object_, key, value)
        return object_

    return make


def built_ins() -> list[str]:
    """The names of the autorate algorithms that come with Bluewater."""
    return sorted(path.stem for path in _BUILT_IN.glob("*.py"))


def built_in(name: str) -> tuple[str, str]:
    """Such an algorithm as ``python:FILE:CLASS``, and the text of its file.

    The class has the name of the file, each word with a capital.
    """
    if name not in built_ins():
        raise unknown("algorithm", name, built_ins(), key="algorithm")
    cls = name.title().replace("_", "")
    return f"{LANGUAGE}{name}.py:{cls}", (_BUILT_IN / f"{name}.py").read_text(encoding="utf-8")


def _values(cls: type[Own], settings: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    declared = parameters(cls)
    for key in settings:
        if key not in declared:
            raise unknown("parameter", key, declared, key=f"params.{key}")
    values = []
    for key, parameter in declared.items():
        text = settings.get(key, parameter.default)
        try:
            values.append((key, *parameter.read(text)))
        except (ValueError, KeyError) as error:
            raise InputError(
                "not allowed", key=f"params.{key}", value=text, allowed=parameter.allowed,
                hint=getattr(error, "hint", None),
            ) from error  # fmt: skip
    return values


_interrupts: list[BaseException] = []


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Raises Ctrl-C in a method as such, where it would appear as an error of the scenario.

    Ends methods that do not return.
    """
    _interrupts.clear()
    try:
        with watched():
            yield
    except ValueError:
        if _interrupts:
            raise _interrupts.pop() from None
        raise


def failure(error: BaseException, object_: Own, method: str, seconds: float) -> BaseException:
    """The error that ends a run whose class raised, with file, line and the packet's time."""
    if isinstance(error, EndlessError):
        late = TimeoutError(f"it did not return within {endless.LIMIT_S:g} s of real time")
        error = late.with_traceback(error.__traceback__)
    if not isinstance(error, Exception | SystemExit):
        _interrupts.append(error)
        return error  # Ctrl-C
    name = type(object_).__name__
    frames = "".join(traceback.format_list(_own(error)))
    defined = getattr(type(object_), method, None)
    # A method that returned no decision has ended: name the line where it begins.
    begins = line_of(defined) if isinstance(defined, FunctionType) else name
    told = OwnError(
        f"{_place(error, begins)}: {name}.{method} at {seconds:.9f} s: {_said(error)}",
        hint=f"it was called like this:\n{frames.rstrip()}" if frames else None,
    )
    told.__cause__ = error
    return told


def _said(error: BaseException) -> str:
    told = f"{type(error).__name__}: {error}"
    if not isinstance(error, AttributeError) or error.obj is None:
        return told
    kind = type(error.obj).__name__
    if not any(kind in base(role).shown for role in _BASES):
        return told
    there = ", ".join(name for name in dir(error.obj) if not name.startswith("_"))
    waited = "; it has waited for now - packet.arrived" if kind == "Packet" else ""
    article = "an" if kind[0] in "AU" else "a"
    return f"{told}; {article} {kind.lower()} has {there}{waited}"


def _own(error: BaseException) -> list[traceback.FrameSummary]:
    """The stack frames of the user's code."""
    return [
        each
        for each in traceback.extract_tb(error.__traceback__)
        if each.filename[:1] == "<" and not each.filename.startswith("<frozen ")
    ]


def _place(error: BaseException, otherwise: str) -> str:
    """File and line of the innermost failing frame of the user's code."""
    own = _own(error)
    if not own:
        return otherwise
    return f"{_name_of(own[-1].filename)}:{own[-1].lineno}"


def split(name: str, key: str) -> tuple[str, str]:
    """File and class of ``python:FILE:CLASS``."""
    file, _, cls = name.removeprefix(LANGUAGE).rpartition(":")
    if not (name.startswith(LANGUAGE) and file and cls):
        small = f"{LANGUAGE}{name[len(LANGUAGE) :]}"
        raise InputError(
            "not the name of a class",
            key=key,
            value=name,
            allowed=f"{LANGUAGE}FILE:CLASS",
            hint=None if name.startswith(LANGUAGE) else f"did you mean '{small}'?",
        )
    return file, cls


def text(own: type[Own] | str) -> tuple[str, str, str]:
    """The source text of a class, the name of its file, and the class's name.

    A name is ``python:FILE:CLASS``, the file from the working directory.
    """
    if not isinstance(own, str):
        role = getattr(own, "role", "aqm")
        written = keys(own, role)
        return written["code"], written[role].split(":")[1], own.__name__
    try:
        file, cls_name = split(own if own.lower().startswith(LANGUAGE) else LANGUAGE + own, "aqm")
    except InputError as error:
        error.value = own
        error.name("aqm")
        raise
    code = read_text(Path(file), hint=f"{LANGUAGE}FILE:CLASS, the file from here", key="aqm")
    path = Path(file)
    return contained(code, path.name, "aqm", path.parent), path.name, cls_name


def entry(name: str) -> dict[str, Any]:
    """The catalogue entry of ``python:FILE:CLASS``, the file from the working directory."""
    code, file, cls_name = text(name)
    cls = load(code, file, cls_name, role_of(code, file, cls_name))
    told = [
        {
            "name": key,
            "kind": each.kind,
            "unit": {"duration": "s, ms, us", "rate": "mbit, kbit"}.get(each.kind, ""),
            "default": each.read(each.default)[1],
            "allowed": each.allowed,
            "doc": each.doc,
            "source": each.source,
        }
        for key, each in parameters(cls).items()
    ]
    signals = [{"name": key, "unit": unit, "doc": doc} for key, (unit, doc) in cls.signals.items()]
    summary = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    return {
        "name": name,
        "summary": summary,
        "source": file,
        "parameters": told,
        "signals": signals,
        "presets": [],
    }


def named(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replaces class objects in a scenario's table by their names and texts."""
    changed = {
        each: [_written(part, role) for part in table[each]]
        for role, each in PLACES.items()
        if isinstance(table.get(each), list)
    }
    return {**table, **changed}


def with_texts(text: str, origin: str) -> str:
    """A scenario whose classes contain what they use, as far as it is known.

    This is known of a class in a file from its first execution, of others from their last one. What
    cannot be read or executed stays as it is.
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        return text
    changed = False
    for role, each in PLACES.items():
        for part in table.get(each, ()) if isinstance(table.get(each), list) else ():
            file, _, _ = str(part.get(role, "")).removeprefix(LANGUAGE).rpartition(":")
            code = part.get("code")
            if not str(part.get(role, "")).startswith(LANGUAGE) or not file:
                continue
            if isinstance(code, str):
                whole = sources.whole(code)
            else:
                path = Path(origin).parent / file
                try:
                    code = path.read_text(encoding="utf-8-sig")
                    whole = contained(code, path.name, role, path.parent)
                except (OSError, ValueError):
                    continue
            if whole != code:
                part["code"], changed = whole, True
    return tomli_w.dumps(table) if changed else text


def _written(part: Any, role: str) -> Any:
    cls = part.get(role) if isinstance(part, dict) else None
    return {**part, **keys(cls, role)} if isinstance(cls, type) else part


def keys(cls: type, role: str = "aqm") -> dict[str, str]:
    """The keys of a queue or a group of traffic that give a class: its name, and its text.

    The text has the class and everything that it uses at the top level of its file or notebook
    cell: imports, constants, functions, other classes. It leaves out the rest of the script, which
    may be what runs the scenario. A class that its text does not give is refused: a global or an
    attribute of the class was changed since.
    """
    folder = Path()
    try:
        module = sys.modules[cls.__module__]
        source, path = inspect.getsource(module), Path(inspect.getsourcefile(module) or "")
        file, folder = path.name, path.parent
    except (OSError, TypeError, KeyError):  # a notebook has no file
        source, file = f"from {_BASES[role][0]} import *\n\n\n{_cell(cls, role)}", "notebook.py"
    try:
        code = contained(cut.closure(source, cls.__name__, role), file, role, folder)
        cut.compare(cls, _space(code, file, role)[cls.__name__])
    except cut.DifferenceError as error:
        raise error.told(cls, role) from None
    except InputError as error:
        name = getattr(error.__cause__, "name", None)
        live = vars(sys.modules.get(cls.__module__, sys))
        if not isinstance(error.__cause__, NameError) or name not in live:
            raise
        raise cut.DifferenceError(name, live[name], None).told(cls, role) from None
    return {role: f"{LANGUAGE}{file}:{cls.__name__}", "code": code}


def _cell(cls: type, role: str) -> str:
    """The text of the notebook cell that defines a class.

    A kernel keeps it under the name by which the methods were compiled. Python does not search
    there for a class whose module has no file.
    """
    for method in vars(cls).values():
        own = isinstance(method, FunctionType) and method.__module__ == cls.__module__
        if own and (lines := linecache.getlines(method.__code__.co_filename)):
            return "".join(lines)
    raise InputError(
        f"the source text of the class {cls.__name__} cannot be found",
        key=role,
        allowed="a class in a file, a class in a notebook's cell with its own methods, or "
        "python:FILE:CLASS",
    )
