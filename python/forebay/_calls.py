"""Functions of Python's that nodes of a graph call: how they are named, found, sent to workers, and what they raise."""

from __future__ import annotations

import copyreg
import hashlib
import io
import itertools
import operator
import os
import pickle
import struct
import sys
import threading
import traceback
import types
from collections import ChainMap, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from forebay._errors import InvalidError

Functions = dict[str, Any]

# The garbage collector may let go of a loader while this thread has it.
_lock = threading.RLock()
_by_loader: dict[int, Functions] = {}
_tags = itertools.count(1)

# Names.


def name(function: Any, version: str | None = None) -> str:
    """What a graph calls a function: its module and name, and behind ``@`` its version, or else a hash of its code.

    A graph's fingerprint has it, so a resume with another function is refused.
    """
    inner = function
    while hasattr(inner, "func") and hasattr(inner, "keywords"):  # functools.partial
        inner = inner.func
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    module = getattr(named, "__module__", None) or "builtins"
    mark = version if version is not None else _code(inner).hexdigest()[:8]
    return f"{module}.{named.__qualname__}@{mark}"


def _code(function: Any) -> Any:
    """A hash of what a function does, as far as its code says it."""
    digest = hashlib.blake2b(digest_size=8)
    whole = function if isinstance(function, type) else type(function)
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None)
    if code is not None:
        _add_code(digest, code)
        return digest
    for part in sorted(vars(whole)):
        method = getattr(vars(whole)[part], "__code__", None)
        if method is not None:
            digest.update(part.encode())
            _add_code(digest, method)
    return digest


def _add_code(digest: Any, code: types.CodeType) -> None:
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames[: code.co_argcount])).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(digest, constant)
        elif isinstance(constant, frozenset):
            digest.update(repr(sorted(map(repr, constant))).encode())
        else:
            digest.update(repr(constant).encode())


# Where they are found.


def register(functions: Functions) -> int:
    """Keeps the functions of one loader, until :func:`forget`; 0 for none."""
    if not functions:
        return 0
    tag = next(_tags)
    with _lock:
        _by_loader[tag] = functions
    return tag


def forget(tag: int) -> None:
    """The loader is gone."""
    with _lock:
        _by_loader.pop(tag, None)


def find(tag: int, called: str) -> Any:
    """The function that a graph calls so: of the loader with this tag, or in a worker one that its loader sent."""
    found = _by_loader.get(tag, {}).get(called)
    if found is None and _sent is not None:
        return _sent.find(called)
    if found is None:
        raise InvalidError(
            f"found no function {called.split('@')[0]!r}: a saved graph stores only the names of Python functions; "
            "build the dataset in Python"
        )
    return found


# Sending them to workers.


class Sent:
    """The functions of a loader, in memory that its workers open; what they raise comes back by another."""

    def __init__(self, functions: Functions) -> None:
        _now.sending = True
        try:
            parts = {called: dump(called, function) for called, function in functions.items()}
        finally:
            _now.sending = False
        by_name = any(b"__main__" in part for part in parts.values())
        document = {"functions": parts, "main": main_of_this(), "runs": by_name, "argv": sys.argv}
        # What workers make of the script's classes is known by this name.
        sys.modules.setdefault("__mp_main__", sys.modules["__main__"])
        self.functions = memory("forebay-functions", pickle.dumps(document))
        self.raised = memory("forebay-raised", b"")
        self.process = os.getpid()

    def args(self) -> list[str]:
        """Where a worker finds both."""
        return [f"/proc/{self.process}/fd/{number}" for number in (self.functions, self.raised)]

    def close(self) -> None:
        """No worker is left."""
        if os.getpid() != self.process:
            return
        with _lock:
            _read_raised(self.raised)
            _raised_by.discard(self.raised)
            _read.pop(self.raised, None)
            for number in (self.functions, self.raised):
                os.close(number)


_now = threading.local()


def sending() -> bool:
    """Whether this thread makes bytes for workers of its own process, which see its memory."""
    return getattr(_now, "sending", False)


def memory(name: str, content: bytes) -> int:
    """The descriptor of memory that workers open by it."""
    number = os.memfd_create(name)
    with os.fdopen(os.dup(number), "wb") as file:
        file.write(content)
    return number


def main_of_this() -> str | None:
    """The script that this program is, where it is one."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(main) if main else None


def loading(load: Callable[[], Any]) -> Any:
    """What ``load`` reads. In a worker the loader's script is run if that names what only the script defines."""
    try:
        return load()
    except (AttributeError, ModuleNotFoundError):
        if _sent is None or _sent.main is None or _sent.main in _ran:
            raise
        run_main(_sent.main)
        return load()


_ran: dict[str, BaseException | None] = {}
_main_lock = threading.RLock()
_main_runs = False


def run_main(main: str) -> None:
    """Runs the script of the loader's program under another name, as multiprocessing does, so that what it defines is found."""
    from multiprocessing import spawn

    global _main_runs
    with _main_lock:
        if main not in _ran:
            _ran[main], _main_runs = None, True
            try:
                spawn._fixup_main_from_path(main)  # type: ignore[attr-defined]
            except SystemExit as end:
                _ran[main] = InvalidError(
                    f"the script ended with {end.code!r} when a worker process ran it again; put its code below {GUARD}"
                )
            except BaseException as error:
                _ran[main] = error
            finally:
                _main_runs = False
        failed = _ran[main]
    if failed is not None:
        raise failed


GUARD = "if __name__ == '__main__':"


def refuse_in_main() -> None:
    """Refuses what a script does only where it was started, while a worker runs it again."""
    if _main_runs:
        raise InvalidError(f"a worker process ran the script again, and the script made a loader; put that code below {GUARD}")


def dump(called: str, function: Any, also: Mapping[type, Callable[[Any], Any]] | None = None) -> bytes:
    """A function as bytes: by cloudpickle, which takes functions of scripts and notebooks whole, or by pickle where that is not installed.

    also: how objects of other types are taken apart.
    """
    table: Mapping[type, Callable[[Any], Any]] = copyreg.dispatch_table
    try:
        from cloudpickle import CloudPickler as Pickler

        table = Pickler.dispatch_table
    except ImportError:
        Pickler = pickle.Pickler
    try:
        file = io.BytesIO()
        type("Sender", (Pickler,), {"dispatch_table": ChainMap(table, also or {})})(file, protocol=5).dump(function)  # type: ignore[arg-type]
        return file.getvalue()
    except Exception as error:
        hint = "" if Pickler is not pickle.Pickler else "; install cloudpickle to send functions that are in no module"
        shown = called.split("@")[0]
        raise InvalidError(f"{shown} cannot be sent to worker processes: {error}{hint}") from error


class Received:
    """The functions of its loader, in a worker: each is made when it is called first."""

    def __init__(self, functions: str, raised: str) -> None:
        with open(functions, "rb") as file:
            document = pickle.load(file)
        self.parts: dict[str, bytes] = document["functions"]
        self.main: str | None = document["main"]
        self.runs: bool = document["runs"]
        sys.argv = document["argv"]  # A script may look at its arguments as it is run again.
        self.raised = os.open(raised, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def find(self, called: str) -> Any:
        if self.main is not None and self.runs:
            run_main(self.main)
        return loading(lambda: pickle.loads(self.parts[called]))

    def tell(self, cookie: int, exception: BaseException) -> None:
        """Writes an exception where the loader finds it."""
        text, line = "".join(traceback.format_exception(exception)), line_of(exception)
        try:
            file = io.BytesIO()
            writes = _Writes(file)
            writes.dump((exception, line, text))
            whole = file.getvalue()
            _Reads(whole, writes.named.__getitem__).load()  # Some can be written and not read.
        except Exception:
            whole = pickle.dumps((None, line, text))
        if len(whole) <= MOST_BYTES:
            os.write(self.raised, struct.pack("<QQ", cookie, len(whole)) + whole)


class _Writes(pickle.Pickler):
    """Writes an exception. A class of the script, which cloudpickle made anew here, is told by its name."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.named: dict[str, type] = {}

    def persistent_id(self, obj: Any) -> str | None:
        if not isinstance(obj, type) or obj.__module__ not in ("__main__", "__mp_main__"):
            return None
        self.named[obj.__qualname__] = obj
        return obj.__qualname__


class _Reads(pickle.Unpickler):
    """Reads it where the script's classes are."""

    def __init__(self, whole: bytes, find: Callable[[str], Any]) -> None:
        super().__init__(io.BytesIO(whole))
        self.find = find

    def persistent_load(self, pid: Any) -> Any:
        return self.find(pid)


def _of_script(name: str) -> Any:
    return operator.attrgetter(name)(sys.modules["__main__"])


_sent: Received | None = None


def receive(functions: str, raised: str) -> None:
    """This process is a worker, of a loader that has these functions."""
    global _sent
    _sent = Received(functions, raised)


# What they raise.

MOST_KEPT = 256
MOST_BYTES = 1 << 20

_kept: OrderedDict[int, BaseException] = OrderedDict()
_cookies = itertools.count(int.from_bytes(os.urandom(6), "little") << 12)
_raised_by: set[int] = set()
_read: dict[int, int] = {}


class RemoteTraceback(Exception):
    """Where an exception was raised in a worker process, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class RemoteError(RuntimeError):
    """An exception of a worker process that cannot be sent from there."""


def keep(exception: BaseException, worker: int | None) -> tuple[int, str, bool]:
    """Keeps what was raised, to be raised again: its cookie, what it says, and whether it is no request to end."""
    cookie = next(_cookies) & (2**64 - 1)
    with _lock:
        if _sent is not None:
            exception.add_note(f"worker process {worker}")
            _sent.tell(cookie, exception)
        else:
            _kept[cookie] = exception
            while len(_kept) > MOST_KEPT:
                _kept.popitem(last=False)
    return cookie, line_of(exception), isinstance(exception, Exception)


def line_of(exception: BaseException) -> str:
    """An exception in one line."""
    lines = "".join(traceback.format_exception_only(type(exception), exception)).splitlines()
    return lines[0] if lines else type(exception).__name__


def listen(sent: Sent) -> None:
    """Workers of a loader may raise."""
    _raised_by.add(sent.raised)


def raised(cookie: int, contexts: list[tuple[str, str]]) -> BaseException | None:
    """The exception with this cookie, with a note that says where; none that was long ago."""
    if cookie not in _kept:
        for number in list(_raised_by):
            _read_raised(number)
    exception = _kept.get(cookie)
    if exception is not None:
        note = ", ".join(f"{name} {value}" for name, value in contexts if name in ("sample", "pipe"))
        if note and note not in getattr(exception, "__notes__", ()):
            exception.add_note(note)
    return exception


def _read_raised(number: int) -> None:
    """Reads what workers wrote since the last time."""
    with _lock:
        # It is closed as soon as its loader is gone, which may be in the midst of this.
        while number in _raised_by and len(head := os.pread(number, 16, at := _read.get(number, 0))) == 16:
            cookie, length = struct.unpack("<QQ", head)
            whole = os.pread(number, length, at + 16)
            _read[number] = at + 16 + length
            try:
                exception, line, text = _Reads(whole, _of_script).load()
            except Exception as error:  # What it needs is there and not here.
                exception, line, text = None, f"an exception that cannot be read here: {line_of(error)}", ""
            if exception is None:
                exception = RemoteError(line)
            exception.__cause__ = RemoteTraceback(text)
            _kept[cookie] = exception
            while len(_kept) > MOST_KEPT:
                _kept.popitem(last=False)


# What pipes need of Python's.


def check_iterable(whole: Any, expected: str) -> None:
    """Refuses what cannot be iterated again and again. Nothing is begun: to iterate may open what it reads."""
    if isinstance(whole, Iterator):
        raise TypeError(f"found {type(whole).__name__}, which can be iterated once, {expected}")
    if not hasattr(whole, "__iter__") and not hasattr(whole, "__getitem__"):
        raise TypeError(f"found {type(whole).__name__}, which cannot be iterated, {expected}")


def rng(low: int, high: int) -> Any:
    """Random numbers for one sample."""
    try:
        import numpy
    except ImportError as error:
        raise InvalidError("random_map needs numpy, for numpy.random.Generator; install numpy") from error
    return numpy.random.Generator(numpy.random.Philox(key=low | high << 64))


def items(whole: Any, numbers: list[int]) -> list[Any]:
    """The items with these numbers: of a mapping those behind so many of its keys."""
    if isinstance(whole, Mapping) or hasattr(whole, "keys"):
        keys = _keys(whole)
        wanted: Iterable[Any] = [keys[number] for number in numbers]
    else:
        wanted = numbers
    together = getattr(whole, "__getitems__", None)
    if callable(together):
        found = list(together(list(wanted)))
        if len(found) != len(numbers):
            raise InvalidError(f"__getitems__ gave {len(found)} items, expected {len(numbers)}")
        return found
    return [whole[one] for one in wanted]


_keys_of: OrderedDict[int, tuple[Any, list[Any]]] = OrderedDict()


def _keys(whole: Any) -> list[Any]:
    known = _keys_of.get(id(whole))
    if known is None or known[0] is not whole:
        known = _keys_of[id(whole)] = (whole, list(whole.keys()))
        while len(_keys_of) > 8:
            _keys_of.popitem(last=False)
    return known[1]
