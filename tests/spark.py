"""A small real Spark cluster of the tests' own: two executors, each a JVM of its own.

``spark`` is the session, started by the first test that asks and shared by one process. Data
that executors exchange go through sockets of the loopback interface, and nothing listens
elsewhere. ``make test`` installs Java where it is missing.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS = 2
LOOPBACK = "127.0.0.1"
# Queries here are tiny: a start of two seconds less is worth more than the best machine code.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
SETTINGS = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.executor.memory": "512m",
    # Planned once, in two partitions: half the time of a tiny query. Tests of the plan set both.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.task.maxFailures": "1",  # what fails here is meant to
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Compiling every tiny query takes a third of the time; ``make soak`` runs what Spark compiles.
if os.environ.get("TOPSECRET_SOAK") != "1":
    SETTINGS |= {
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
    }
# Without any appender Spark would take its own settings.
NO_LOGS = """\
rootLogger.level = off
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
"""


def spark_home(folder: Path) -> Path:
    """The installed Spark by another name: executors write below it, not in site-packages.

    Its logging is off, so that what a failing task says about its row does not appear.
    """
    import pyspark

    for path in Path(pyspark.__path__[0]).iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "conf").mkdir()
    (folder / "conf" / "log4j2.properties").write_text(NO_LOGS)
    (folder / "work").unlink(missing_ok=True)
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """A session on the cluster."""
    if shutil.which("java") is None:
        pytest.fail("Java is missing; run make test, which installs it")
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(prefix="spark-") as name, pytest.MonkeyPatch.context() as env:
        home = spark_home(Path(name))
        env.setenv("SPARK_HOME", str(home))
        env.setenv("SPARK_LOCAL_IP", LOOPBACK)
        env.setenv("SPARK_LOCAL_DIRS", str(home))
        env.setenv("SPARK_CONF_DIR", str(home / "conf"))
        builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,1024]")
        own = {
            "spark.driver.extraJavaOptions": f"{SHORT_LIVED} -Dderby.system.home={home}",
            "spark.sql.warehouse.dir": str(home / "tables"),
        }
        builder = builder.config(map=SETTINGS | own)
        session = builder.getOrCreate()
        yield session
        session.stop()


def own_views(session: "SparkSession") -> list[str]:
    """The names of the views that topsecret has made."""
    return [one.viewName for one in session.sql("SHOW VIEWS LIKE 'topsecret*'").collect()]
