"""Datasets: graphs of pipes, as immutable values."""

from __future__ import annotations

import builtins
import json
import keyword
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from forebay import _calls, plugins
from forebay._errors import InvalidError
from forebay._loader import Loader
from forebay._native import Graph

if TYPE_CHECKING:
    import inspect

    from forebay._pipes import Pipes
else:
    Pipes = object  # Pipes are found when they are asked for.

Node = dict[str, Any]


class Dataset(Pipes):
    """What is read, and what is done with it: a graph of pipes.

    It is a value: each method gives another one. Every pipe of every plugin is a method: ``dir(ds)`` lists them, and
    ``help(ds.shuffle)`` shows the options of one. Nothing is read before a loader is iterated.

    >>> import forebay as fb
    >>> fb.range(10).shuffle(4).batch(5).to_line()
    'range 10 | shuffle 4 | batch 5'
    """

    __slots__ = ("_nodes", "_run", "_end", "_functions")

    def __init__(
        self,
        nodes: Iterable[Node],
        run: Mapping[str, Any] | None = None,
        end: str | None = None,
        functions: Mapping[str, Any] | None = None,
    ) -> None:
        self._nodes: tuple[Node, ...] = tuple(nodes)
        self._run = dict(run or {})
        self._end = end if end is not None else (self._nodes[-1]["name"] if self._nodes else "")
        self._functions: _calls.Functions = dict(functions or {})

    # Forms.

    @classmethod
    def _of(cls, graph: Graph) -> Dataset:
        document = json.loads(graph.to_json())
        nodes = document["node"]
        read = {part.split(".")[0] for node in nodes for part in node["inputs"]}
        ends = [node["name"] for node in nodes if node["name"] not in read]
        return cls(nodes, document.get("run"), ends[-1] if ends else None)

    @classmethod
    def from_line(cls, line: str) -> Dataset:
        """The graph in one line, as ``files 'a/*.tar' | untar | batch 8``."""
        return cls._of(Graph.read("line", line))

    @classmethod
    def from_toml(cls, text: str) -> Dataset:
        """The graph in TOML."""
        return cls._of(Graph.read("toml", text))

    @classmethod
    def from_json(cls, text: str) -> Dataset:
        """The graph in JSON."""
        return cls._of(Graph.read("json", text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """The graph in a file: TOML, or JSON if that is its name's end."""
        with builtins.open(path, encoding="utf-8") as file:
            text = file.read()
        return cls.from_json(text) if os.fspath(path).endswith(".json") else cls.from_toml(text)

    def _graph(self, places: Mapping[str, str] | None = None) -> Graph:
        """The graph, with places for some nodes."""
        places = places or {}
        nodes = [{**node, "on": places[node["name"]]} if node["name"] in places else node for node in self._nodes]
        document: dict[str, Any] = {"node": nodes}
        if self._run:
            document["run"] = self._run
        return Graph.read("json", json.dumps(document))

    def to_json(self) -> str:
        """The graph in JSON."""
        return self._graph().to_json()

    def to_toml(self) -> str:
        """The graph in TOML."""
        return self._graph().to_toml()

    def to_line(self) -> str:
        """The graph in one line."""
        return self._graph().to_line(plugins.registry())

    def fingerprint(self) -> str:
        """What tells this graph from every other, in hex digits. It is checked first."""
        return self._graph().fingerprint(plugins.registry())

    def check(self) -> None:
        """Raise :class:`InvalidError` with all that is wrong with the graph."""
        self._graph().check(plugins.registry())

    def __repr__(self) -> str:
        return f"<forebay.Dataset {self._graph().shown(plugins.registry(), 3)}>"

    def _repr_html_(self) -> str:
        from forebay import _html

        return _html.graph(self._nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> str:
        return json.dumps([self._nodes, self._run, self._end], sort_keys=True)

    def __reduce__(self) -> tuple[Any, ...]:
        functions = {called: _calls.dump(called, function) for called, function in self._functions.items()}
        return _unpickled, (self._nodes, self._run, self._end, functions)

    # Pipes.

    def pipe(self, name: str, /, *values: Any, **options: Any) -> Any:
        """The pipe called ``name`` behind this: what ``ds.NAME(...)`` does, for names that are no method's.

        A pipe with several outputs, such as ``fork``, gives a dataset for each. What stands before it is read once for all of them.
        """
        made = _behind((self,), name, values, options)
        return made if _outputs(made._nodes[-1]) == 1 else _split(made)

    def map(
        self,
        function: Callable[..., Any] | str,
        /,
        *values: Any,
        batched: bool = False,
        batch_size: int = 1000,
        version: str | None = None,
        **options: Any,
    ) -> Dataset:
        """What ``function`` makes of each sample: it is given a ``dict`` of the fields, and gives one.

        batched: it is given a ``dict`` of lists, of ``batch_size`` samples, and gives such a one, of as many rows as it likes.
        version: what tells it from an earlier one, in place of a hash of its code: a resume with another version is refused.
        on: ``"process"`` or ``"threads"``. Unless given, functions run in processes where the interpreter has a lock.

        A function gives what becomes the sample: a ``tuple`` makes fields ``0``, ``1`` and so on, anything else the field ``value``.
        In place of a function, the pipe ``map`` takes expressions, which need no interpreter: ``ds.map("area=width * height")``.

        >>> import forebay as fb
        >>> [s["value"] for s in fb.range(3).map(lambda s: {"value": s["value"] * 2}).loader(executor="inline")]
        [0, 2, 4]
        """
        if not callable(function):
            return _behind((self,), "map", (function, *values), options)
        if not batched:
            return self._calling("py_map", function, version, options)
        gathered = _behind((self,), "py_gather", (batch_size,), {})
        return gathered._calling("py_rows", function, version, options)

    def random_map(
        self, function: Callable[[dict[str, Any], Any], Any], /, *, version: str | None = None, **options: Any
    ) -> Dataset:
        """As :meth:`map`, for a function that is given random numbers too, as a ``numpy.random.Generator``.

        They depend on the seed, the epoch and the sample alone: they are the same with every executor and after a resume.
        """
        return self._calling("py_map", function, version, {**options, "takes": "random"})

    def filter(
        self, condition: Callable[[dict[str, Any]], Any] | str, /, *values: Any, version: str | None = None, **options: Any
    ) -> Dataset:
        """The samples of which ``condition``, a function or an expression, is true.

        >>> import forebay as fb
        >>> [s["value"] for s in fb.range(5).filter("value % 2 == 0").loader(executor="inline")]
        [0, 2, 4]
        """
        if not callable(condition):
            return _behind((self,), "filter", (condition, *values), options)
        return self._calling("py_filter", condition, version, options)

    def flat_map(
        self, function: Callable[[dict[str, Any]], Iterable[Any]] | str, /, *values: Any, version: str | None = None, **options: Any
    ) -> Dataset:
        """The samples that ``function``, a generator for example, makes of each."""
        if not callable(function):
            return _behind((self,), "flat_map", (function, *values), options)
        return self._calling("py_flat_map", function, version, options)

    def batch(
        self,
        size: int,
        drop_last: bool = False,
        *,
        collate_fn: Callable[[list[dict[str, Any]]], Any] | None = None,
        version: str | None = None,
        **options: Any,
    ) -> Dataset:
        """So many samples in one: arrays are stacked, text and bytes become lists.

        collate_fn: makes the batch, of a list of samples, in place of that.
        drop_last: leave out the last batch if it is shorter.
        """
        if collate_fn is None:
            return _behind((self,), "batch", (size,), {"drop_last": drop_last, **options} if drop_last else options)
        lists = _behind((self,), "py_gather", (size,), {"drop_last": drop_last, "whole": True})
        return lists._calling("py_map", collate_fn, version, {**options, "takes": "samples"})

    def sample(self, sampler: Iterable[int], *, version: str | None = None, **options: Any) -> Dataset:
        """The samples of a source with random access that ``sampler`` draws: an object that iterates over their numbers, anew in each epoch.

        A sampler with ``state_dict`` and ``load_state_dict`` goes on from there after a resume; any other is iterated again from its start.
        """
        if iter(sampler) is sampler:
            raise TypeError(f"found {type(sampler).__name__}, which can be iterated once, expected a sampler")
        return self._calling("py_sampler", sampler, version, options)

    @property
    def _is_indexed(self) -> bool:
        """Whether samplers can draw from it."""
        last = next((node for node in self._nodes if node["name"] == self._end), None)
        return last is not None and bool(plugins.pipes()[last["pipe"]].get("indexed"))

    def _calling(self, pipe: str, function: Any, version: str | None, options: Mapping[str, Any]) -> Dataset:
        """A node more, which calls a function."""
        called = _unlike(self._functions, _calls.name(function, version), function)
        made = _behind((self,), pipe, (called,), options)
        made._functions[called] = function
        return made

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return _method(name, lambda values, options: self.pipe(name, *values, **options), "a Dataset")

    def __dir__(self) -> list[str]:
        known = plugins.pipes()
        own = (
            name
            for name, pipe in known.items()
            if pipe["class"] not in ("source", "Source") and not name.startswith("py_")
        )
        return sorted({*super().__dir__(), *own})

    # Running.

    def loader(self, **settings: Any) -> Loader:
        """What reads it: see :class:`Loader` for the settings."""
        return Loader(self, **settings)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Its batches as a stream of Arrow's: ``polars.DataFrame(ds)``, ``pyarrow.table(ds)``. It needs pyarrow."""
        return self.loader(output="arrow").__arrow_c_stream__(requested_schema)

    def head(self, count: int = 5) -> list[dict[str, Any]]:
        """The first samples."""
        with self.loader(executor="inline", limit=count) as loader:
            found = []
            for sample in loader:
                found.append(sample)
                if len(found) == count:
                    break
            return found


def open(path: str | os.PathLike[str]) -> Dataset:
    """Whatever is at a path or URL: files are looked into, opened and decoded.

    Samples that fail are listed, and end the epoch with an error once all others came.
    """
    return Dataset._of(Graph.open(os.fspath(path), plugins.registry()))


def files(*paths: str | os.PathLike[str], **options: Any) -> Dataset:
    """The files at these paths, patterns or URLs: a sample for each."""
    names = [os.fspath(path) for path in paths]
    return _behind((), "files", (names if len(names) != 1 else names[0],), options)


PICTURES = "{jpg,jpeg,png,webp,gif,bmp,tif,tiff,JPG,JPEG,PNG,WEBP,GIF,BMP,TIF,TIFF}"


def image_folder(path: str | os.PathLike[str], *, shuffle: bool = False, classes: list[str] | None = None) -> Dataset:
    """The pictures below a folder that has a folder for each class: ``image``, the file's bytes, ``label``, ``class`` and ``path``.

    shuffle: all files in random order, in another one in each epoch. It costs no memory, since a file is read when its turn comes.
    classes: the names of the folders, whose places are the labels; unless given, all there are, in the order of their names.

    Cut and decode them behind it: ``fb.image_folder("train", shuffle=True).random_resized_crop(224).decode()``.
    """
    root = os.fspath(path)
    found = files(f"{root.rstrip('/')}/**/*.{PICTURES}", open="none")
    if shuffle:
        found = _behind((found,), "random_sampler", (), {})
    given: dict[str, Any] = {"root": root} if classes is None else {"root": root, "classes": classes}
    labelled = _behind((found,), "label", (), given)
    return _behind((_behind((labelled,), "read", (), {}),), "rename", ("bytes=image",), {})


def from_iterable(make: Callable[[], Iterable[Any]] | Iterable[Any], *, version: str | None = None, **options: Any) -> Dataset:
    """What ``make()`` iterates over, anew in each pass; or what an object that can be iterated again and again does.

    If that, or its iterator, has ``state_dict`` and ``load_state_dict``, a resume goes on from there. Else it iterates again from the start of the
    pass, and passes over what was delivered.

    >>> import forebay as fb
    >>> [s["value"] for s in fb.from_iterable(lambda: iter("ab")).loader(executor="inline")]
    ['a', 'b']
    """
    if not callable(make) and iter(make) is make:
        raise TypeError(f"found {type(make).__name__}, which can be iterated once, expected a function that makes it")
    return _source("py_source", make, version, options)


def from_indexed(items: Any, *, version: str | None = None, **options: Any) -> Dataset:
    """The samples of an object with ``__len__`` and ``__getitem__``, or of a mapping, by random access.

    A sampler behind it draws from it without reading what it does not draw. ``__getitems__``, which is given a list, is used where there is one.

    >>> import forebay as fb
    >>> [s["value"] for s in fb.from_indexed({"a": 1, "b": 2}).loader(executor="inline")]
    [1, 2]
    """
    if not hasattr(items, "__len__") or not hasattr(items, "__getitem__"):
        raise TypeError(f"found {type(items).__name__}, expected an object with __len__ and __getitem__")
    return _source("py_indexed", items, version, options)


def from_list(items: Iterable[Any], *, version: str | None = None, **options: Any) -> Dataset:
    """Samples that are there: ``dict``, or single values. They are kept once, for all worker processes together."""
    from forebay._lists import Items

    return _source("py_indexed", Items(items), version, options)


def from_arrow(data: Any, *, version: str | None = None, **options: Any) -> Dataset:
    """The rows of a table: of pyarrow, polars, DuckDB, or whatever else Arrow libraries can read. It needs pyarrow.

    A sampler behind it draws rows at random.
    """
    from forebay import _arrow

    return _source("py_indexed", _arrow.Rows(data), version, options)


def _source(pipe: str, made_by: Any, version: str | None, options: Mapping[str, Any]) -> Dataset:
    called = _calls.name(made_by, version)
    made = _behind((), pipe, (called,), options)
    made._functions[called] = made_by
    return made


def _unpickled(
    nodes: tuple[Node, ...], run: dict[str, Any], end: str, functions: dict[str, bytes]
) -> Dataset:
    import pickle

    return Dataset(nodes, run, end, {called: pickle.loads(part) for called, part in functions.items()})


def _unlike(functions: Mapping[str, Any], called: str, function: Any) -> str:
    """The name, with a number where another function has it."""
    number, free = 2, called
    while free in functions and functions[free] is not function:
        number, free = number + 1, f"{called}#{number}"
    return free


def __getattr__(name: str) -> Callable[..., Dataset]:
    """Every source, and every pipe that reads several datasets, is a function: ``fb.range(10)``, ``fb.mix([a, b])``."""
    if name.startswith("_"):
        raise AttributeError(f"module 'forebay' has no attribute {name!r}")

    def make(values: tuple[Any, ...], options: dict[str, Any]) -> Dataset:
        first = values[0] if values else None
        inputs: tuple[Dataset, ...] = ()
        if isinstance(first, Dataset):
            inputs, values = (first,), values[1:]
        elif isinstance(first, (list, tuple)) and first and all(isinstance(one, Dataset) for one in first):
            inputs, values = tuple(first), values[1:]
        return _behind(inputs, name, values, options)

    return _method(name, make, "module 'forebay'")


def _method(
    name: str, make: Callable[[tuple[Any, ...], dict[str, Any]], Any], owner: str
) -> Callable[..., Any]:
    """The pipe called ``name`` as a function, with its options in its signature and in its help."""
    known = plugins.pipes().get(name)
    if known is None:
        near = _near(name, plugins.pipes())
        hint = f"; did you mean {near}?" if near else ""
        raise AttributeError(f"{owner} has no attribute or pipe {name!r}{hint}")

    def method(*values: Any, **options: Any) -> Any:
        return make(values, options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = _help(known)
    method.__signature__ = _signature(known)  # type: ignore[attr-defined]
    return method


def _near(name: str, known: Mapping[str, Any]) -> str | None:
    import difflib

    found = difflib.get_close_matches(name, known, n=1)
    return repr(found[0]) if found else None


def _signature(pipe: Mapping[str, Any]) -> inspect.Signature:
    """The options as parameters: those without a default come first."""
    import inspect

    both = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    for option in pipe["options"]:
        default = inspect.Parameter.empty if option.get("required") else option.get("default")
        parameters.append(inspect.Parameter(_spelt(option["name"]), both, default=default))
    kinds = sorted(parameters, key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    return inspect.Signature(kinds, return_annotation=Dataset)


def _spelt(option: str) -> str:
    """An option's name as Python may have it: ``class`` is ``class_``."""
    return f"{option}_" if keyword.iskeyword(option) else option


def _help(pipe: Mapping[str, Any]) -> str:
    lines = [pipe["summary"] + ".", ""]
    for option in pipe["options"]:
        default = "" if option.get("required") else f" (unless given: {option.get('default')!r})"
        lines.append(f"{option['name']}: {option.get('summary', option.get('doc', ''))}{default}")
    return "\n".join(lines).rstrip()


def _behind(inputs: tuple[Dataset, ...], name: str, values: tuple[Any, ...], options: Mapping[str, Any]) -> Dataset:
    """A dataset with one more node, which reads ``inputs``."""
    pipe = plugins.pipes().get(name)
    if pipe is None:
        near = _near(name, plugins.pipes())
        raise InvalidError(f"found no pipe {name!r}" + (f"; did you mean {near}?" if near else ""), [("pipe", name)])
    nodes: list[Node] = []
    ends: list[str] = []
    run: dict[str, Any] = {}
    functions: _calls.Functions = {}
    shared: dict[int, str] = {}
    for dataset in inputs:
        end = _merge(nodes, functions, dataset, shared)
        ends.append(end)
        run.update(dataset._run)
    node: Node = {"name": _free(name, nodes), "pipe": name, "inputs": ends}
    for option, value in zip(_order(pipe), values, strict=False):
        node[option] = _plain(name, option, value)
    if len(values) > len(pipe["options"]):
        raise TypeError(f"{name}() takes {len(pipe['options'])} options, found {len(values)}")
    spelt = {_spelt(option): option for option in _order(pipe)}
    for given, value in options.items():
        option = spelt.get(given, given)
        if option in node and option not in ("name", "pipe", "inputs"):
            raise TypeError(f"{name}() got option {option!r} twice")
        node[option] = _plain(name, option, value)
    return Dataset([*nodes, node], run, node["name"], functions)


def _split(whole: Dataset) -> tuple[Dataset, ...]:
    """One dataset for each output of the last node."""
    node = whole._nodes[-1]
    ends = (f"{node['name']}.{at}" for at in _range(_outputs(node)))
    return tuple(Dataset(whole._nodes, whole._run, end, whole._functions) for end in ends)


_range = range


def _order(pipe: Mapping[str, Any]) -> list[str]:
    return [option["name"] for option in pipe["options"]]


def _plain(pipe: str, option: str, value: Any) -> Any:
    """An option's value as JSON has it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [_plain(pipe, option, one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(pipe, option, one) for name, one in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    item = getattr(value, "item", None)  # A number of NumPy's.
    if callable(item):
        return _plain(pipe, option, item())
    raise TypeError(f"{pipe}() option {option!r}: found {type(value).__name__}, expected what JSON has")


def _merge(nodes: list[Node], functions: _calls.Functions, dataset: Dataset, shared: dict[int, str]) -> str:
    """Adds the nodes and functions of a dataset under names that are free, and gives the name of its end.

    A dataset that is there already is read once more: it is a value. But what stands before a pipe with several outputs is read once for all
    of them; ``shared`` knows the names of what was added by these calls.
    """
    names: dict[str, str] = {}
    called: dict[str, str] = {}
    for old, function in dataset._functions.items():
        called[old] = _unlike(functions, old, function)
        functions[called[old]] = function
    split = _before_a_split(dataset._nodes)
    for node in dataset._nodes:
        if id(node) in shared and node["name"] in split:
            names[node["name"]] = shared[id(node)]
            continue
        name = _free(node["name"], nodes)
        names[node["name"]] = shared[id(node)] = name
        new = {**node, "name": name, "inputs": [_renamed(part, names) for part in node["inputs"]]}
        if node.get("function") in called:
            new["function"] = called[node["function"]]
        nodes.append(node if new == node else new)  # The same one, so that it is known again.
    return _renamed(dataset._end, names)


def _before_a_split(nodes: Iterable[Node]) -> set[str]:
    """The pipes with several outputs, and all that they read."""
    found: set[str] = set()
    for node in reversed(list(nodes)):
        if node["name"] in found or _outputs(node) > 1:
            found.add(node["name"])
            found.update(part.partition(".")[0] for part in node["inputs"])
    return found


def _outputs(node: Node) -> int:
    """How many outputs a node has."""
    pipe = plugins.pipes().get(node["pipe"], {})
    option = pipe.get("outputs_option")
    if not option:
        return int(pipe.get("outputs", 1))
    value = node.get(option, next((one["default"] for one in pipe["options"] if one["name"] == option), None))
    return len(value) if isinstance(value, list) else int(value or 1)


def _renamed(part: str, names: Mapping[str, str]) -> str:
    name, dot, port = part.partition(".")
    return names.get(name, name) + dot + port


def _free(name: str, nodes: Iterable[Node]) -> str:
    taken = {node["name"] for node in nodes}
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}-{number}"
    return free
