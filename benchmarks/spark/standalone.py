"""A standalone cluster of Spark on this machine: a master and two workers, each a process."""

import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
# Two addresses, because Spark never copies a slow task to the machine it already runs on.
HOSTS = ("127.0.0.1", "127.0.0.2")


@contextmanager
def run_cluster(environment: Mapping[str, str], directory: Path, *, memory: str) -> Iterator[str]:
    """Run a master and two workers with a core each; yield the master's URL.

    The environment has SPARK_HOME, JAVA_HOME and PYSPARK_PYTHON.
    """
    spark_class = f"{environment['SPARK_HOME']}/bin/spark-class"
    with ExitStack() as stack:
        master = [spark_class, MASTER, "--host", HOSTS[0], "--port", "0", "--webui-port", "0"]
        url = stack.enter_context(_run_daemon(master, environment, r"spark://127\.0\.0\.1:[1-9]\d*"))
        for number, host in enumerate(HOSTS):
            home = str(directory / f"worker {number}")
            worker = [spark_class, WORKER, "--host", host, "--webui-port", "0", "--cores", "1"]
            worker += ["--memory", memory, "--work-dir", home, url]
            own = {**environment, "SPARK_LOCAL_IP": host}
            stack.enter_context(_run_daemon(worker, own, "Successfully registered"))
        yield url


@contextmanager
def _run_daemon(command: list[str], environment: Mapping[str, str], ready: str) -> Iterator[str]:
    """Run one of Spark's daemons; yield the output that matches `ready` once it appears."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    reading = threading.Thread(target=process.stdout.read)
    try:
        found = next((match for line in process.stdout if (match := re.search(ready, line))), None)
        if found is None:
            raise RuntimeError(f"{command[1]} ended with exit code {process.wait()}")
        # Read the rest of the output, so that it cannot fill the pipe.
        reading.start()
        yield found[0]
    finally:
        process.terminate()
        process.wait(60)
        if reading.ident is not None:
            reading.join(60)
        process.stdout.close()
