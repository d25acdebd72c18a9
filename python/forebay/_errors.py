"""Exceptions, one class for each kind of error."""

from __future__ import annotations

from typing import ClassVar


class ForebayError(Exception):
    """An error of Forebay: what was found, where, and what was expected.

    ``message`` says what went wrong; ``context`` lists the places, innermost first.
    """

    kind: ClassVar[str] = ""

    def __init__(self, message: str, context: list[tuple[str, str]] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.context = dict(context or [])

    def __str__(self) -> str:
        places = ", ".join(f"{name} {value}" for name, value in self.context.items())
        return f"{self.message} ({places})" if places else self.message

    def __reduce__(self) -> tuple[type[ForebayError], tuple[str, list[tuple[str, str]]]]:
        return type(self), (self.message, list(self.context.items()))

    @property
    def file(self) -> str | None:
        """The file where it happened."""
        return self.context.get("file")

    @property
    def node(self) -> str | None:
        """The node of the graph that failed."""
        return self.context.get("pipe")

    @property
    def plugin(self) -> str | None:
        """The plugin that failed."""
        return self.context.get("plugin")

    @property
    def key(self) -> str | None:
        """The key of the sample."""
        return self.context.get("sample")


class IoError(ForebayError, OSError):
    """The system could not read or write."""

    kind = "io"


class CorruptError(ForebayError, ValueError):
    """The bytes break the rules of their format."""

    kind = "corrupt"


class UnsupportedError(ForebayError, NotImplementedError):
    """The bytes are right, but this feature of their format is not handled."""

    kind = "unsupported"


class InvalidError(ForebayError, ValueError):
    """The graph, an option or an argument is wrong."""

    kind = "invalid"


class LimitError(ForebayError, MemoryError):
    """A limit was reached before memory was taken."""

    kind = "limit"


class AbiError(ForebayError, ImportError):
    """A plugin does not fit this Forebay."""

    kind = "abi"


class PluginPanic(ForebayError, RuntimeError):
    """A plugin's code panicked."""

    kind = "panic"


class WorkerDied(ForebayError, RuntimeError):
    """A worker process died."""

    kind = "worker"


class Cancelled(ForebayError, RuntimeError):
    """The loader was stopped."""

    kind = "cancelled"


class Bug(ForebayError, RuntimeError):
    """Forebay broke one of its own promises."""

    kind = "bug"


KINDS = {
    error.kind: error
    for error in (
        IoError,
        CorruptError,
        UnsupportedError,
        InvalidError,
        LimitError,
        AbiError,
        PluginPanic,
        WorkerDied,
        Cancelled,
        Bug,
    )
}


def make(kind: str, message: str, context: list[tuple[str, str]]) -> ForebayError:
    """The exception for an error of this kind."""
    return KINDS.get(kind, Bug)(message, context)
