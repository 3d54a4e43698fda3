"""MLflow: a run is found again by its hash, and goes on behind its last step; both are tags."""

import logging
import os
import re
from collections.abc import Sequence
from typing import Any

from hopscope.errors import SharingError
from hopscope.sharing.tracked import Row, Tracked
from hopscope.sharing.tracker import Place, library
from hopscope.store.files import check_folder

HASH, STEP = "hopscope.hash", "hopscope.step"
"""Tags of a run."""
AT_ONCE = 1_000
"""Numbers that a server takes in one request."""
LONGEST = 500
"""Letters of a setting that every version keeps."""


class Mlflow:
    """An experiment there: in a folder, or where MLflow's own settings say."""

    def __init__(self, place: Place) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        self.place, self.mlflow = place, library("mlflow")
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        uri = None
        if place.to is not None:
            check_folder(place.to)
            place.to.mkdir(parents=True, exist_ok=True)
            uri = f"sqlite:///{place.to.resolve()}/mlflow.db"
        self.client = self.mlflow.MlflowClient(tracking_uri=uri)
        self.where = uri or self.mlflow.get_tracking_uri()
        self.failures = (self.mlflow.exceptions.MlflowException, OSError)

    def begin(self, run: Tracked) -> "MlflowLog":
        """The run with this model's hash."""
        try:
            return MlflowLog(self, run, self._experiment())
        except self.failures as error:
            raise _refused(run, error) from error

    def _experiment(self) -> str:
        name = self.place.project
        found = self.client.get_experiment_by_name(name)
        return str(found.experiment_id if found else self.client.create_experiment(name))


class MlflowLog:
    """One run there."""

    def __init__(self, home: Mlflow, run: Tracked, experiment: str) -> None:
        self._home, self._run, self.where = home, run, home.where
        self._names: set[str] = set()
        found = home.client.search_runs([experiment], f"tags.`{HASH}` = '{run.id}'", max_results=1)
        if found:
            self._id, self.last = found[0].info.run_id, int(found[0].data.tags.get(STEP, -1))
            self._names.update(found[0].data.metrics)
            return
        tags = {HASH: run.id, **({"hopscope.group": run.group} if run.group else {})}
        made = home.client.create_run(experiment, run_name=run.name, tags=tags)
        self._id, self.last = made.info.run_id, -1
        param = library("mlflow.entities").Param
        settings = [param(name, str(value)[:LONGEST]) for name, value in run.settings.items()]
        home.client.log_batch(self._id, params=settings)

    def has(self, series: str) -> bool:
        return metric_name(series) in self._names

    def add(self, rows: Sequence[Row]) -> None:
        """Log numbers, so many in a request; the step goes with them, so that whoever is
        interrupted between two requests goes on behind the first.
        """
        entities = library("mlflow.entities")
        width = max(len(values) for _, values in rows)
        seconds = self._run.folder.manifest.seconds / max(1, self._run.folder.manifest.step)
        try:
            size = max(1, AT_ONCE // width)
            for part in (rows[start : start + size] for start in range(0, len(rows), size)):
                numbers = [
                    entities.Metric(metric_name(name), value, int(step * seconds * 1000), step)
                    for step, values in part
                    for name, value in values.items()
                ]
                step = entities.RunTag(STEP, str(max(self.last, part[-1][0])))
                self._home.client.log_batch(self._id, metrics=numbers, tags=[step])
                self._names.update(metric_name(name) for _, values in part for name in values)
        except self._home.failures as error:
            raise _refused(self._run, error) from error

    def close(self) -> None:
        """Say that the run has ended, if it has."""
        if self._run.folder.manifest.complete:
            self._home.client.set_terminated(self._id)


def metric_name(name: str) -> str:
    """The name with what MLflow allows in one.

    >>> metric_name("attention/0.1/key 0→value 0"), metric_name("parameters/c{1,2}")
    ('attention/0.1/key 0 to value 0', 'parameters/c_1_2')
    """
    return re.sub(r"[^\w./ -]+", "_", name.replace("→", " to ")).rstrip("_")


def _refused(run: Tracked, error: Any) -> SharingError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return SharingError(f"mlflow refuses {run.name}: {reason[:200]}")
