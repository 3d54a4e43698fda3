"""The exception tree. Every message says what was got, what was expected, what to do::

    HopscopeError
    ├── ConfigError        a knob has a value that makes no sense, or a name is unknown
    ├── FactError          a fact graph that is not one: cyclic, empty, out of reach
    ├── ModelError         weights or an attention edit that do not fit the model
    ├── CircuitError       a question about heads and paths that cannot be answered
    │   └── NotLearned     the model does not solve the task: there is nothing to find
    ├── StoreError         anything about run folders
    │   ├── RunMissing     no run, or several, answer to the name
    │   ├── RunDamaged     a file is truncated, altered or gone
    │   │   └── RunUnreadable  permission to read it is missing
    │   ├── RunMismatch    the file belongs to another configuration
    │   ├── RunTooNew      written by a newer hopscope
    │   ├── RunBusy        another process is training it
    │   ├── RunTaken       another process has taken it over
    │   ├── RunReadOnly    a model of the gallery was to be written to
    │   └── StoreUnwritable   disk full, read-only, no permission
    ├── LlmError           a language model cannot be had, asked, or understood
    │   ├── ModelUnavailable   not on this machine and not to be fetched, or with a wrong hash
    │   └── EndpointFailed     a server that refuses, fails, or answers nonsense
    ├── ResultsError       anything about the results of a paper
    │   ├── ResultsMissing    not measured yet
    │   └── ResultsUnreadable damaged, of another version, or in the way
    ├── SharingError       a tracker or a hub is not there, refuses, or sends what is no run
    ├── Withdrawn          a question whose asker left, or that took too long
    ├── WorkerDied         a process that trained runs was killed, again and again
    ├── OutputLost         what a command prints cannot be written
    └── TrainingError
        ├── Diverged       the loss is not a number, or far above any guess
        └── OutOfMemory    the machine or its GPU cannot hold what a training needs

    KeyboardInterrupt
    └── Interrupted        a signal asked the training to stop; a checkpoint was written

An interruption is no HopscopeError, nor any Exception: a loop over trainings that goes on after
`except Exception` has to end at Ctrl-C all the same. Texts belong to the interface, and are tested.
"""


class HopscopeError(Exception):
    """Base of everything hopscope raises for a user; its text is one line."""

    exit_code = 2

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback: the lines of one's own that led here, and
        the text.
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
    """A knob has a value that makes no sense, or a name is unknown."""


class FactError(HopscopeError):
    """A fact graph that is not one: cyclic, empty, or with symbols out of reach."""


class ModelError(HopscopeError):
    """Weights or an attention edit that do not fit the model."""


class StoreError(HopscopeError):
    """The base of all errors about run folders."""


class RunMissing(StoreError):
    """No run, or several, answer to the name."""


class RunDamaged(StoreError):
    """A file of a run is truncated, altered or gone."""


class RunUnreadable(RunDamaged):
    """Permission to read a file of a run is missing."""


class RunMismatch(StoreError):
    """A file belongs to another configuration than the one asked for."""


class RunTooNew(StoreError):
    """The folder was written by a newer hopscope."""


class RunBusy(StoreError):
    """Another process is training this run."""


class RunTaken(StoreError):
    """Another process has taken this run over, as we were not heard of for too long."""


class RunReadOnly(StoreError):
    """A model of the gallery, which nothing writes to."""


class StoreUnwritable(StoreError):
    """The disk is full, the folder read-only, or permission missing."""


class ResultsError(HopscopeError):
    """The base of all errors about the results of a paper."""


class ResultsMissing(ResultsError):
    """Rows of a target are asked for that were not measured yet."""


class ResultsUnreadable(ResultsError):
    """A file of results is damaged, of another version, or in the way."""


class TrainingError(HopscopeError):
    """A training that could not go on."""


class Diverged(TrainingError):
    """The loss is not a number, or far above any guess."""

    exit_code = 3


class OutOfMemory(TrainingError):
    """The machine or its GPU cannot hold what a training needs, now at least."""


class Interrupted(KeyboardInterrupt):
    """A run was asked to stop; a checkpoint was written first."""

    exit_code = 130
    reason = ""
    """Who asked: a signal's name, the time limit, or what else was said."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of a traceback: nothing went wrong."""
        return [f"{type(self).__name__}: {self}"]


class Withdrawn(HopscopeError):
    """A question to a model whose asker left before the answer, or that took too long."""


class SharingError(HopscopeError):
    """A tracker or a hub that is not there, refuses, or sends what is no run."""


class WorkerDied(HopscopeError):
    """The process that trained a run was killed, several times without coming further."""


class OutputLost(HopscopeError):
    """What a command prints cannot be written: a full disk behind `>`, say."""


class CircuitError(HopscopeError):
    """A question about heads and paths that this model or task cannot answer."""


class NotLearned(CircuitError):
    """The model does not solve the task: there is nothing to find."""


class LlmError(HopscopeError):
    """A language model that cannot be had, asked, or understood."""


class ModelUnavailable(LlmError):
    """The model is not on this machine and cannot be fetched, or its hash is wrong."""


class EndpointFailed(LlmError):
    """A server refused, failed, or answered nonsense."""


class RunWarning(UserWarning):
    """Something about a run that should be known, and stops nothing."""


OF_ONE_RUN = (
    Diverged, LlmError, OutOfMemory, RunBusy, RunDamaged, RunMismatch, RunTaken, RunTooNew,
    WorkerDied,
)  # fmt: skip
"""Errors that concern a single run: a sweep over several runs reports them and goes on."""
