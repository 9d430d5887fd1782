"""Environments in which agents learn to manage queues, or to send.

An episode is one simulation. In each step an agent gives one number: the probability with which
its queue signals arriving packets, or the window of its connections. The same scenarios, seeds
and actions give the same decisions, bit for bit; ``scenario()`` is an ordinary scenario that
repeats an episode.
"""

from importlib import import_module

try:
    for _each in ("gymnasium", "numpy", "pettingzoo"):
        import_module(_each)
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(f"{error}; pip install 'bluewater[gym]'", name=error.name) from None

from bluewater.gym.envs import BottleneckEnv, BottleneckVectorEnv
from bluewater.gym.parallel import BottleneckParallelEnv
from bluewater.gym.seen import (
    OF_QUEUE,
    OF_SENDER,
    Seen,
    queue_features,
    queue_reward,
    sender_features,
    sender_reward,
)

__all__ = [
    "OF_QUEUE",
    "OF_SENDER",
    "BottleneckEnv",
    "BottleneckParallelEnv",
    "BottleneckVectorEnv",
    "Seen",
    "queue_features",
    "queue_reward",
    "sender_features",
    "sender_reward",
]
