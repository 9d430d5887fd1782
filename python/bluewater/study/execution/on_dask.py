"""Runs on a Dask cluster.

Workers that see the results' folder write into it themselves: their finished runs are kept even if
everything else dies. Other workers send a run's files to the client.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bluewater.errors import InputError, StorageError
from bluewater.kinds import KINDS
from bluewater.results.store import Store, run_key
from bluewater.study.execution.task import Failure, Progress, Task
from bluewater.study.execution.worker import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from distributed import Client

_DEATHS = 10
"""Workers of our own cluster that may die under a run before the run is given up."""
_IDLE_S = 60
"""Seconds without work after which our own cluster ends, because its client is gone."""
_ALONE_S = 60.0
"""Seconds without any worker after which waiting ends."""
_POLL_S = 0.02
"""Seconds between checks for finished runs."""
_ASK_S = 1.0
"""Seconds between checks for workers."""
_SEEN_S = 60.0
"""Seconds until a shared folder shows what another machine wrote into it."""


def check() -> None:
    """Raises an :class:`InputError` if Dask is not installed."""
    if find_spec("distributed") is None:
        raise InputError("Dask is not installed", hint="pip install 'bluewater[dask]'")


def make(
    pending: Sequence[Task],
    store: Store,
    on_progress: Callable[[Progress], None],
    *,
    jobs: int,
    address: str,
) -> list[Failure]:
    """Makes runs on the cluster of the scheduler at ``address``, or on ``jobs`` processes here."""
    failures = []
    with ExitStack() as stack:
        client = stack.enter_context(_client(address, jobs))
        beacon = stack.enter_context(_beacon(store))
        # Keys are unique to this call, because another call may have another folder.
        token = uuid4().hex[:12]
        tasks = {f"bluewater-{token}-{task.key}": task for task in pending}
        futures = client.map(
            work,
            list(tasks.values()),
            key=list(tasks),
            root=str(store.root),
            beacon=beacon,
            share=store.share,
        )
        stack.callback(client.cancel, futures, force=True)
        for future, answer in _completed(futures, _Watch(client, address)):
            task = tasks[str(future.key)]
            failure = _failure(task, future.status, answer, store)
            if failure is not None:
                failures.append(failure)
            future.release()
            on_progress(Progress(task, 1.0, failure))
    return failures


def work(task: Task, root: str, beacon: str, share: str = "") -> dict[str, Any]:
    """Makes a run in a worker; returns :func:`~bluewater.study.execution.worker.serve`'s answer.

    The answer has ``files`` if this worker does not see the folder ``root`` with the file
    ``beacon``.
    """
    if run_key(task.text, KINDS[task.kind].version()) != task.key:
        problem = "the worker has another version of Bluewater or of its programs"
        return {"error": {"kind": "run", "problem": problem}}
    if (Path(root) / beacon).exists():
        store = Store(Path(root), share)
        return {"done": ""} if task.key in store else serve(task, store)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), share)
        said = serve(task, store)
        return said if "error" in said else {**said, "files": store.files(task.key)}


def _completed(futures: Sequence[Any], watch: _Watch) -> Iterator[tuple[Any, Any]]:
    """Yields futures with their results as they end; calls ``watch`` meanwhile."""
    from distributed import as_completed  # noqa: PLC0415 - takes a second, and is not always there

    done = as_completed(  # type: ignore[no-untyped-call]
        futures, with_results=True, raise_errors=False
    )
    while not done.is_empty():  # type: ignore[no-untyped-call]
        if done.has_ready():  # type: ignore[no-untyped-call]
            yield next(done)
        else:
            watch.look()
            time.sleep(_POLL_S)


class _Watch:
    """Checks that a cluster has workers, because Dask would wait for them forever."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address
        self.asked = self.seen = time.monotonic()

    def look(self) -> None:
        """Raises an error if our own cluster has no worker; only warns for another's cluster."""
        now = time.monotonic()
        if now - self.asked < _ASK_S:
            return
        self.asked = now
        if self.client.nthreads():  # type: ignore[no-untyped-call]
            self.seen = now
        if now - self.seen < _ALONE_S:
            return
        problem = f"the Dask cluster has had no worker for {_ALONE_S:g} s"
        if not self.address:
            raise InputError(
                f"{problem}: its processes died or never started",
                key="on",
                value="dask",
                hint="finished runs are kept, and the same command continues; --on here needs no "
                "cluster",
            )
        self.seen = now
        warnings.warn(f"{problem}: still waiting for {self.address}", RuntimeWarning, stacklevel=2)


@contextmanager
def _client(address: str, jobs: int) -> Iterator[Client]:
    from distributed import Client  # noqa: PLC0415
    from distributed.deploy.subprocess import SubprocessCluster  # noqa: PLC0415

    if address:
        try:
            client = Client(address, timeout=10)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers: {error}", key="on", value=f"dask={address}"
            ) from error
        with client:
            yield client
        return
    # Not LocalCluster, whose processes would run the caller's script again.
    with (
        SubprocessCluster(
            n_workers=jobs,
            threads_per_worker=1,
            dashboard_address=None,  # type: ignore[arg-type]
            # A killed client closes no cluster, so the cluster ends by itself.
            scheduler_kwargs={"allowed_failures": _DEATHS, "idle_timeout": f"{_IDLE_S}s"},
            worker_kwargs={"memory_limit": 0, "dashboard": False, "death_timeout": _IDLE_S},
        ) as cluster,
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


@contextmanager
def _beacon(store: Store) -> Iterator[str]:
    """A file in the store; a worker that finds it sees the same folder."""
    path = store.root / f".seen-{uuid4().hex}"
    path.touch()
    try:
        yield path.name
    finally:
        path.unlink(missing_ok=True)


def _failure(task: Task, status: str, answer: Any, store: Store) -> Failure | None:
    """The outcome of a task, from the state and result of its future."""
    if status != "finished":
        error = answer[1] if isinstance(answer, tuple) else answer
        return Failure(task, f"{type(error).__name__}: {error}" if error else status)
    if error := answer.get("error"):
        if error["kind"] == "storage":
            raise StorageError(error["problem"], file=task.label, hint=error["hint"])
        return Failure(task, error["problem"])
    if files := answer.get("files"):
        store.add(task.key, files)
    until = time.monotonic() + _SEEN_S
    while task.key not in store:
        if time.monotonic() > until:
            return Failure(task, f"a worker wrote the run, but {store.root} does not have it")
        time.sleep(0.5)
    return None
