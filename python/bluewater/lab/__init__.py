"""The laboratory from Python: the work of the command line, with results as objects.

Every function here is ``bluewater.NAME``. Runs are kept in the folder ``out`` (by default
``results``) and used again; :func:`run` has no default folder, and without ``out`` keeps nothing.
"""

from __future__ import annotations

from bluewater.lab.advice import Advice, advise
from bluewater.lab.attacks import Attack, attack
from bluewater.lab.identification import identify, probe
from bluewater.lab.making import CORES, DEFAULT_OUT, make_all
from bluewater.lab.papers import plan, reproduce
from bluewater.lab.runs import load, newest, plot, run, testbed, with_series
from bluewater.lab.sweeps import Sweep, carry_out, compare, sweep
from bluewater.lab.tuning import Tuning, tune

__all__ = [
    "CORES",
    "DEFAULT_OUT",
    "Advice",
    "Attack",
    "Sweep",
    "Tuning",
    "advise",
    "attack",
    "carry_out",
    "compare",
    "identify",
    "load",
    "make_all",
    "newest",
    "plan",
    "plot",
    "probe",
    "reproduce",
    "run",
    "sweep",
    "testbed",
    "tune",
    "with_series",
]
