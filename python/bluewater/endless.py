"""Ends methods of users' classes that do not return.

A thread looks twice a second which call of a user's method each watched thread is in. So a call
costs nothing, and one that is still the same after :data:`LIMIT_S` is ended by an exception.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from bluewater import sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

LIMIT_S = 10.0
"""Real time that a method may take, in s. Time in which the whole process is stopped is free."""
LOOK_S = 0.5
"""Time between two looks, in s."""


class EndlessError(BaseException):
    """Raised in a method that takes too long, which is not to catch it as one of its own errors."""


_watched: Counter[int] = Counter()
"""Threads that may call users' methods, and in how many ways."""
_ended: set[int] = set()
"""Threads in which an exception was to be raised, whether it was or not."""
_lock = threading.Lock()
_watcher: threading.Thread | None = None


def _forked() -> None:
    """A fork has no watcher, and the lock may be held in it by none of its threads."""
    global _lock, _watcher
    _lock, _watcher = threading.Lock(), None
    _watched.clear()
    _ended.clear()


os.register_at_fork(after_in_child=_forked)


@contextmanager
def watched() -> Iterator[None]:
    """Ends users' methods that this thread calls and that do not return."""
    global _watcher  # noqa: PLW0603
    me = threading.get_ident()
    with _lock:
        _watched[me] += 1
        if _watcher is None:
            thread = threading.Thread(target=_watch, daemon=True)
            with suppress(RuntimeError):  # no more threads are allowed: nothing is ended
                thread.start()
                _watcher = thread
    try:
        yield
    finally:
        with _lock:
            _watched[me] -= 1
            if not _watched[me]:
                del _watched[me]
            if me in _ended:
                _ended.remove(me)
                _take(me)


def _watch() -> None:
    """Looks until no thread is watched any more."""
    global _watcher  # noqa: PLW0603
    looks: Counter[int] = Counter()
    """For how many looks each thread has been in the same call."""
    while True:
        time.sleep(LOOK_S)
        with _lock:
            if not _watched:
                _watcher = None
                return
            for thread in _watched:
                looks[thread] = looks[thread] + 1 if _in_same_call(thread) else 0
                # Again at each look, in case the method catches it.
                if looks[thread] * LOOK_S >= LIMIT_S:
                    _ended.add(thread)
                    _raise(thread)


def _in_same_call(thread: int) -> bool:
    """Whether a thread is in the call of a user's method in which it was at the last look.

    The frame of a call has a mark from its first look on: ``f_trace_lines``, which only tracing
    reads. A reference to the frame would keep objects of its thread alive for this one.
    """
    call = _call(sys._current_frames().get(thread))
    if call is None:
        return False
    marked = not call.f_trace_lines
    call.f_trace_lines = False
    return marked


def _call(frame: FrameType | None) -> FrameType | None:
    """The outermost users' method that runs; none while it loads a module or is debugged."""
    found, loading = None, False
    while frame is not None:
        loading |= frame.f_code.co_name == "<module>"
        if sources.is_users(frame.f_code.co_filename):
            if loading or frame.f_trace is not None:
                return None
            found = frame
        frame = frame.f_back
    return found


def _raise(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(EndlessError)
    )


def _take(me: int) -> None:
    """Takes what may still have to be raised in this thread: the method has returned meanwhile.

    To revoke it would leave the interpreter looking for it before every instruction, for good.
    """
    with suppress(EndlessError):
        _raise(me)
        while True:
            pass
