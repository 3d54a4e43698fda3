"""The exceptions. Every message is one line: what was got, what was expected, what to do.

`Interrupted` is neither a HopscopeError nor an Exception, so that Ctrl-C also ends a loop over
trainings that continues after `except Exception`. The messages are part of the interface and are
tested.
"""


class HopscopeError(Exception):
    """Base of everything hopscope raises for a user; its text is one line."""

    exit_code = 2

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows instead of a traceback: the traceback's lines in the
        user's code, and the message.
        """
        import traceback  # milliseconds that `import hopscope` need not wait for
        from pathlib import Path
        from sysconfig import get_path

        tools = (str(Path(__file__).parent), get_path("purelib"), get_path("platlib"))
        own = [
            f"line {frame.lineno}: {frame.line}"
            for frame in traceback.extract_tb(self.__traceback__)
            if not frame.filename.startswith(tools)
        ]
        return [*own, f"{type(self).__name__}: {self}"]


class ConfigError(HopscopeError):
    """A setting, a name or a fact graph that makes no sense or is unknown."""


class ModelError(HopscopeError):
    """Weights or an attention edit that do not fit the model."""


class CircuitError(HopscopeError):
    """A request about heads or paths that is not possible for this model or task."""


class NotLearned(CircuitError):
    """The model does not solve the task, so there is no circuit to find."""


class StoreError(HopscopeError):
    """The base of all errors about run folders."""


class RunMissing(StoreError):
    """No run has the name, or several runs do."""


class RunDamaged(StoreError):
    """A file of a run is truncated, altered or missing."""


class RunMismatch(StoreError):
    """A file belongs to another configuration, or to a newer hopscope."""


class RunBusy(StoreError):
    """Another process is training this run, or has taken it over."""


class RunReadOnly(StoreError):
    """A model of the gallery, or a page that is read-only, cannot be written to."""


class StoreUnwritable(StoreError):
    """The disk is full, the folder read-only, or permission missing."""


class ResultsError(HopscopeError):
    """Results of a paper are missing, damaged, from another version, or exist already."""


class TrainingError(HopscopeError):
    """A training cannot continue: memory is short, or its process was killed repeatedly."""


class Diverged(TrainingError):
    """The loss is NaN, or far above chance."""

    exit_code = 3


class LmError(HopscopeError):
    """A language model cannot be downloaded, loaded, queried or examined."""


class EndpointFailed(LmError):
    """A server refused a request, failed, or sent an invalid answer."""


class SharingError(HopscopeError):
    """A tracker or hub is not available, refuses, or sends something that is not a run."""


class OutputLost(HopscopeError):
    """The output of a command cannot be written, e.g. to a full disk."""


class Interrupted(KeyboardInterrupt):
    """A run was asked to stop; a checkpoint was written first."""

    def __init__(self, text: str, reason: str = "", exit_code: int = 130) -> None:
        """`reason` is the name of a signal, the time limit, or any other text."""
        super().__init__(text)
        self.reason, self.exit_code = reason, exit_code

    def _render_traceback_(self) -> list[str]:
        """The line that a notebook shows instead of a traceback: nothing went wrong."""
        return [f"{type(self).__name__}: {self}"]


class RunWarning(UserWarning):
    """A problem with a run that the user should know of but that stops nothing."""


OF_ONE_RUN = (TrainingError, LmError, RunBusy, RunDamaged, RunMismatch)
"""Errors that concern a single run: a sweep over several runs reports them and goes on."""
