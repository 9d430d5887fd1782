"""Executes the texts of users' classes, with the modules and files that they use.

Such a text is part of a scenario, and so of a run's name in the store. It therefore contains what
it uses: after the text of the class's own file come the texts of the modules that it imports from
outside the installed packages, and a digest of each file that it reads. The parts begin with lines
of their own::

    #% bluewater: module gains.py
    #% bluewater: file weights.npy 9f86d081884c7d65
    #% bluewater: place gains.py /home/me/gains.py

The last kind is there only for a file that asks for its place, ``__file__``.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import linecache
import os
import site
import sys
import sysconfig
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PART = "#% bluewater: "
_ABSENT = "absent"
"""In place of the digest of a file that does not exist."""
_PREFIX = "bluewater_own_"
"""What the names of modules begin with in which texts are executed."""


class Text(NamedTuple):
    """A text by its parts."""

    main: str
    modules: dict[str, str]
    """The texts of modules by their path, such as ``package/module.py``."""
    files: dict[str, str]
    """The digests of files by their path, as the text opens them."""
    places: dict[str, str]
    """The places of files that ask for it, by their path; ``main`` is the class's own."""

    def joined(self) -> str:
        """The text as scenarios have it."""
        if not (self.modules or self.files or self.places):
            return self.main
        parts = [_ended(self.main)]
        for path, text in sorted(self.modules.items()):
            parts += [f"{_PART}module {path}\n", _ended(text)]
        for kind, table in (("file", self.files), ("place", self.places)):
            parts += [f"{_PART}{kind} {path} {value}\n" for path, value in sorted(table.items())]
        return "".join(parts)


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def parts(code: str) -> Text:
    """Splits a scenario's text."""
    main, *rest = code.removeprefix("\ufeff").split(f"\n{_PART}")
    text = Text(f"{main}\n" if rest else main, {}, {}, {})
    for part in rest:
        head, _, lines = part.partition("\n")
        kind, _, what = head.partition(" ")
        if kind == "module":
            text.modules[what] = lines
        elif kind == "file":
            path, _, digest = what.rpartition(" ")
            text.files[path] = digest
        else:
            path, _, place = what.partition(" ")
            text.places[path] = place
    return text


def extended(code: str, more: str) -> str:
    """A text with more lines after those of the class's own file."""
    text = parts(code)
    return text._replace(main=_ended(text.main) + more).joined()


def root(code: str) -> str:
    """The name of the module in which a text is executed."""
    return f"{_PREFIX}{sha256(code.encode()).hexdigest()[:16]}"


def is_executed(name: str) -> bool:
    """Whether a module is part of an executed text."""
    return name.startswith(_PREFIX)


def execute(code: str, file: str, folder: Path | None = None) -> dict[str, Any]:
    """Executes a text; returns the names that it defines.

    Args:
        code: The text.
        file: The name of the class's file, for messages.
        folder: Where modules are searched before Python's own places.
    """
    return _Executed(code, file, folder).space


def forget() -> None:
    """Forgets what texts have used: what :func:`whole` adds is what they use from now on."""
    _used.clear()


def found_in(code: str, folder: Path) -> None:
    """From now on modules that a text imports late, as in ``start``, are searched in a folder."""
    _folders[root(code)] = folder


def whole(code: str) -> str:
    """The text with the modules and files that its executions have used."""
    used, text = _used.get(root(code)), parts(code)
    if used is None or not any(used[1:]):
        return code
    return Text(
        text.main,
        {**text.modules, **used.modules},
        {**text.files, **used.files},
        {**text.places, **used.places},
    ).joined()


_used: dict[str, Text] = {}
"""What a text uses that it does not contain, by the name of the module that executes it."""
_folders: dict[str, Path] = {}
"""Where modules of a text are searched, by the same name."""
_declared: dict[str, Mapping[str, str]] = {}
"""The files that a text contains the digests of, by the same name."""
_roots: dict[str, str] = {}
"""That name by the file name under which a text or a module of it was compiled."""
_running = ContextVar("running", default=False)
_reading = False


def is_users(filename: str) -> bool:
    """Whether code has the name of a user's text that was executed here."""
    return filename in _roots


@contextmanager
def running() -> Iterator[None]:
    """While a run lasts, which is named by what its texts have used before it began."""
    before = _running.set(True)  # of this thread: searches make runs in several
    try:
        yield
    finally:
        _running.reset(before)


class _Executed:
    """One execution of a text, with modules of its own."""

    def __init__(self, code: str, file: str, folder: Path | None) -> None:
        self.text = parts(code)
        self.root = root(code)
        folder = _folders.get(self.root) if folder is None else folder
        self.folders = [] if folder is None else [str(folder)]
        self.loaded: dict[str, ModuleType] = {}
        self.places: dict[str, Sequence[str]] = {}
        self.foreign: set[str] = set(_FOREIGN)
        _listen()
        self.used = _used.setdefault(self.root, Text("", {}, {}, {}))
        _declared[self.root] = self.text.files
        module = ModuleType(self.root)
        self.space = module.__dict__
        self.run(module, self.text.main, file, None if folder is None else str(folder / file))

    def run(self, module: ModuleType, text: str, file: str, place: str | None) -> None:
        """Executes the text of a module, whose file is at a place if that is known."""
        name = "main" if module.__name__ == self.root else file
        if "__file__" in text and (known := self.text.places.get(name, place)):
            module.__file__ = known
            if name not in self.text.places:
                self.used.places[name] = os.path.abspath(known)  # noqa: PTH100
        where = f"<{file} {sha256(text.encode()).hexdigest()[:8]}>"
        linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
        _roots[where] = self.root
        tree = ast.parse(text, where)
        _check(tree, where, is_main=module.__name__ == self.root)
        sys.modules[module.__name__] = module  # where dataclasses look for it
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self.imported}
        exec(compile(tree, where, "exec"), module.__dict__)

    def imported(
        self,
        name: str,
        names: Mapping[str, Any] | None = None,
        local: Any = None,
        wanted: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """The statement ``import``: modules outside the installed packages are executed anew."""
        if level:
            package = str((names or {}).get("__package__") or "").removeprefix(self.root)
            name = importlib.util.resolve_name("." * level + name, package.removeprefix("."))
        first = name.partition(".")[0]
        if first in self.foreign or not self.has(first):
            self.foreign.add(first)
            return builtins.__import__(name, names, local, wanted or (), 0)
        module = self.module(name)
        for each in wanted or ():
            if each != "*" and not hasattr(module, each) and self.has(f"{name}.{each}"):
                self.module(f"{name}.{each}")
        return module if wanted else self.module(first)

    def has(self, name: str) -> bool:
        """Whether a module is one of the text's own."""
        return name in self.loaded or self.find(name) is not None

    def module(self, name: str) -> ModuleType:
        """A module, executed at its first import."""
        if name in self.loaded:
            return self.loaded[name]
        parent, _, last = name.rpartition(".")
        holder = self.module(parent) if parent else None
        found = self.find(name)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        path, text, place = found
        if path not in self.text.modules:
            if _running.get():
                raise ImportError(f"{name} is imported during the run: import it at the top")
            self.used.modules[path] = text
        module = ModuleType(f"{self.root}.{name}")
        is_package = path.endswith("/__init__.py")
        module.__package__ = module.__name__ if is_package else f"{self.root}.{parent}".strip(".")
        self.loaded[name] = module
        self.run(module, text, path, place)
        if holder is not None:
            setattr(holder, last, module)
        return module

    def find(self, name: str) -> tuple[str, str, str | None] | None:
        """Path, text and place of a module of the text's own; ``None`` for all others."""
        base = name.replace(".", "/")
        for path in (f"{base}/__init__.py", f"{base}.py"):
            if path in self.text.modules:
                return path, self.text.modules[path], None
        parent, _, _ = name.rpartition(".")
        if name in self.foreign or (parent and parent not in self.places):
            return None
        spec = PathFinder.find_spec(name, self.places.get(parent) or [*self.folders, *sys.path])
        if spec is None and not parent:
            spec = _registered(name)
        places = list(getattr(spec, "submodule_search_locations", None) or ())
        origin = spec.origin if spec is not None and spec.has_location else None
        files = [*places, *([] if origin is None else [origin])]
        if not files or any(map(_is_installed, files)):
            return None
        if origin is not None and origin.endswith(tuple(EXTENSION_SUFFIXES)):
            _read(self.root, origin)
            return None
        self.places[name] = places
        path = f"{base}/__init__.py" if places else f"{base}.py"
        return path, _content(origin).decode("utf-8-sig") if origin else "", origin


_FOREIGN = frozenset(sys.stdlib_module_names) | {"bluewater", "__main__"}
"""Modules that are never part of a text."""


def _registered(name: str) -> Any:
    """Where Python finds a module that is in none of the folders of its path."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _installed() -> tuple[str, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    here = [sysconfig.get_path(each) for each in kinds]
    here += [*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parent)]
    here += [f"{each}/share" for each in (sys.prefix, sys.base_prefix)]
    here += ["/dev", "/proc", "/sys", "/etc"]
    return tuple({os.path.join(os.path.realpath(each), "") for each in here})  # noqa: PTH118


_INSTALLED = _installed()


def _is_installed(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to the system."""
    return os.path.join(os.path.realpath(path), "").startswith(_INSTALLED)  # noqa: PTH118


def _check(tree: ast.Module, where: str, *, is_main: bool) -> None:
    """Refuses values that come from the command line or the environment: no text contains them."""
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test):
            continue  # what is run as a script alone
        kinds = (ast.Assign, ast.AnnAssign, *([ast.ClassDef, ast.If] if is_main else []))
        if not isinstance(statement, kinds):
            continue  # what a class does not use, perhaps
        looked = getattr(statement, "value", None) or statement
        for node in ast.walk(looked):
            if not isinstance(node, ast.Attribute):
                continue
            if (taken := ast.unparse(node)) in ("sys.argv", "os.environ", "os.getenv"):
                message = f"{taken} is not part of the scenario: declare a parameter in the class"
                raise SyntaxError(message, (where, node.lineno, None, None))


_listening = False


def _listen() -> None:
    """From now on the files that executed texts open are noted."""
    global _listening  # noqa: PLW0603
    if not _listening:
        _listening = True
        sys.addaudithook(_heard)


def _heard(event: str, args: tuple[Any, ...]) -> None:
    if event != "open" or _reading:
        return
    path, mode, flags = args
    if isinstance(path, int) or _writes(mode, flags):
        return
    frame = sys._getframe(1)
    by_import = frame.f_code.co_filename.startswith(_IMPORT)
    imports = False
    while frame is not None:
        where = frame.f_code.co_filename
        if where in _roots:
            if by_import or not imports:  # not what a package reads while it is imported
                _read(_roots[where], os.fsdecode(path))
            return
        imports |= where.startswith(_IMPORT)
        frame = frame.f_back  # type: ignore[assignment]


_IMPORT = "<frozen importlib"
"""What the names of the files of Python's import begin with."""


def _writes(mode: str | None, flags: int) -> bool:
    if mode is None:
        return flags & (os.O_WRONLY | os.O_RDWR) == os.O_WRONLY
    return not mode.startswith(("r", "U")) and "+" not in mode


def _read(root: str, path: str) -> None:
    """Notes that a text reads a file, and compares it with the digest that the text contains."""
    if path.startswith("<") or _is_installed(path):
        return
    now, told = _digest(path), _declared[root].get(path)
    if told is None and not _running.get():
        _used.setdefault(root, Text("", {}, {}, {})).files[path] = now
    elif told is None:
        raise RuntimeError(f"{path} is read during the run: read it in start()")
    elif told != now:
        raise RuntimeError(f"{path} has changed since the scenario was read")


def _digest(path: str) -> str:
    try:
        return sha256(_content(path)).hexdigest()[:16]
    except OSError:
        return _ABSENT


def _content(path: str) -> bytes:
    """What a file has; that this module reads it is not noted."""
    global _reading  # noqa: PLW0603
    _reading = True
    try:
        return Path(path).read_bytes()
    finally:
        _reading = False
