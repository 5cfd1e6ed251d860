"""A real cluster of processes on this machine, as a child that is told what to do by lines.

Started as a script it keeps the cluster; `Nodes` is the handle of those who started it. The tests'
own process stays out of Ray.
"""

import contextlib
import subprocess
import sys
from typing import Any, Self

import psutil


class Nodes:
    """A head without cores for workers, and worker nodes that may be killed and added."""

    def __enter__(self) -> Self:
        self._child = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = self._told()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()  # the end of its input ends the cluster
        self._child.wait(60)
        self._child.stdout.close()

    def actors(self) -> list[psutil.Process]:
        """The processes of this cluster that run the kernel."""
        return self._named("MapWorker")

    def workers(self) -> list[psutil.Process]:
        """All of Ray's workers: also those of which one cannot tell yet what they will run."""
        return self._named("ray::", "default_worker.py")

    def _named(self, *names: str) -> list[psutil.Process]:
        found = []
        for process in psutil.Process(self._child.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(name in word for word in process.cmdline() for name in names):
                    found.append(process)
        return found

    def add(self) -> None:
        self._do("add")

    def kill(self) -> None:
        """The power of a worker node fails: kill -9 of all that runs on it."""
        self._do("kill")

    def _do(self, word: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{word}\n")
        self._child.stdin.flush()
        assert self._told() == "done"

    def _told(self) -> str:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith("-> "):
                return line[3:].strip()
        raise AssertionError("the cluster's process ended")


def _keep() -> None:
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - only here, in the child

    cores: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 150 * 1024 * 1024}
    head = {**cores, "num_cpus": 1, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    workers = [cluster.add_node(**cores)]
    cluster.wait_for_nodes()
    print(f"-> {cluster.address}", flush=True)
    for line in sys.stdin:
        if line.strip() == "add":
            workers.append(cluster.add_node(**cores))
        else:
            node = workers.pop(0)
            # Workers whose raylet alone is killed live on for seconds, and make calls.
            raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
            for process in [raylet, *raylet.children(recursive=True)]:
                process.kill()
            cluster.remove_node(node, allow_graceful=False)
        print("-> done", flush=True)
    cluster.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    _keep()
