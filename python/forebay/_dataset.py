"""Datasets: graphs of pipes, as immutable values."""

from __future__ import annotations

import json
import keyword
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from forebay import _calls, plugins
from forebay._errors import InvalidError
from forebay._explain import Explanation, explain
from forebay._loader import Loader
from forebay._native import Graph
from forebay._nodes import Node, free, merge, outputs, plain, unlike

if TYPE_CHECKING:
    import inspect

    from forebay._pipes import Pipes
else:
    Pipes = object  # Pipes are found when they are asked for.


class Dataset(Pipes):
    """A graph of pipes: what is read, and what is done with it.

    It is a value: each method returns another dataset. Every pipe of every plugin is a method. ``dir(ds)`` lists
    them, and ``help(ds.shuffle)`` shows the options of one. Nothing is read before you iterate over a loader.

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
        """The dataset of a graph in one line, such as ``files 'a/*.tar' | untar | batch 8``."""
        return cls._of(Graph.read("line", line))

    @classmethod
    def from_toml(cls, text: str) -> Dataset:
        """The dataset of a graph in TOML."""
        return cls._of(Graph.read("toml", text))

    @classmethod
    def from_json(cls, text: str) -> Dataset:
        """The dataset of a graph in JSON."""
        return cls._of(Graph.read("json", text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """The dataset of a graph file: JSON if its name ends in ``.json``, else TOML."""
        with open(path, encoding="utf-8") as file:
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
        """A hash that identifies this graph, in hex digits. The graph is checked first."""
        return self._graph().fingerprint(plugins.registry())

    def check(self) -> None:
        """Raises :class:`InvalidError` with all problems of the graph."""
        self._graph().check(plugins.registry())

    def explain(
        self, *, num_workers: int | None = None, executor: str | None = None, ranks: tuple[int, int] | str | None = None
    ) -> Explanation:
        """Explains what a loader with these settings would do.

        It lists each node with its options, where it runs, how many samples it gives if that is known, and lints. No
        data is opened. The text is that of ``forebay explain``.

        >>> import forebay as fb
        >>> fb.range(9).batch(3).shuffle(2).explain(executor="inline").lints[0].node
        'shuffle'
        """
        return explain(self, num_workers, executor, ranks)

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
        """Adds the pipe called ``name``, as ``ds.NAME(...)`` does. Use it if a method has the name of the pipe.

        A pipe with several outputs, such as ``fork``, returns a dataset for each. The nodes before it run once for
        all of them.
        """
        made = behind((self,), name, values, options)
        return made if outputs(made._nodes[-1]) == 1 else _split(made)

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
        """Applies ``function`` to each sample. It takes a ``dict`` of the fields, and returns one.

        batched: the function takes a ``dict`` of lists, of ``batch_size`` samples, and returns one with any number of
        rows.
        version: identifies the function instead of a hash of its code; a resume with another version is refused.
        on: ``"process"`` or ``"threads"``. Unless given, functions run in processes if the interpreter has a lock.

        The return value becomes the sample: a ``tuple`` makes fields ``0``, ``1`` and so on, anything else the field
        ``value``. The pipe ``map`` also takes expressions instead of a function, which need no interpreter:
        ``ds.map("area=width * height")``.

        >>> import forebay as fb
        >>> [s["value"] for s in fb.range(3).map(lambda s: {"value": s["value"] * 2}).loader(executor="inline")]
        [0, 2, 4]
        """
        if not callable(function):
            return behind((self,), "map", (function, *values), options)
        if not batched:
            return self._calling("py_map", function, version, options)
        gathered = behind((self,), "py_gather", (batch_size,), {})
        return gathered._calling("py_rows", function, version, options)

    def random_map(
        self, function: Callable[[dict[str, Any], Any], Any], /, *, version: str | None = None, **options: Any
    ) -> Dataset:
        """As :meth:`map`, for a function that also takes random numbers, as a ``numpy.random.Generator``.

        The numbers depend only on the seed, the epoch and the sample. They are the same with every executor and after
        a resume.
        """
        return self._calling("py_map", function, version, {**options, "takes": "random"})

    def filter(
        self, condition: Callable[[dict[str, Any]], Any] | str, /, *values: Any, version: str | None = None, **options: Any
    ) -> Dataset:
        """Keeps the samples for which ``condition``, a function or an expression, is true.

        >>> import forebay as fb
        >>> [s["value"] for s in fb.range(5).filter("value % 2 == 0").loader(executor="inline")]
        [0, 2, 4]
        """
        if not callable(condition):
            return behind((self,), "filter", (condition, *values), options)
        return self._calling("py_filter", condition, version, options)

    def flat_map(
        self, function: Callable[[dict[str, Any]], Iterable[Any]] | str, /, *values: Any, version: str | None = None, **options: Any
    ) -> Dataset:
        """Replaces each sample by the samples that ``function`` returns for it. The function can be a generator."""
        if not callable(function):
            return behind((self,), "flat_map", (function, *values), options)
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
        """Joins ``size`` samples into one: arrays are stacked, text and bytes become lists.

        collate_fn: a function that makes the batch from a list of samples instead.
        drop_last: leave out the last batch if it is shorter.
        """
        if collate_fn is None:
            return behind((self,), "batch", (size,), {"drop_last": drop_last, **options} if drop_last else options)
        lists = behind((self,), "py_gather", (size,), {"drop_last": drop_last, "whole": True})
        return lists._calling("py_map", collate_fn, version, {**options, "takes": "samples"})

    def sample(self, sampler: Iterable[int], *, version: str | None = None, **options: Any) -> Dataset:
        """Reads the samples that ``sampler`` draws from a source with random access. The sampler is an object that
        iterates over sample numbers, again in each epoch.

        If the sampler has ``set_epoch``, it gets the loader's epoch before each iteration, and its order may depend
        on nothing else. If it has ``state_dict`` and ``load_state_dict``, a resume goes on from its state. Otherwise
        a resume iterates it again from its start.
        """
        _calls.check_iterable(sampler, "expected a sampler")
        return self._calling("py_sampler", sampler, version, options)

    @property
    def _is_indexed(self) -> bool:
        """Whether samplers can draw from it."""
        last = next((node for node in self._nodes if node["name"] == self._end), None)
        return last is not None and bool(plugins.pipes()[last["pipe"]].get("indexed"))

    def _calling(self, pipe: str, function: Any, version: str | None, options: Mapping[str, Any]) -> Dataset:
        """A node more, which calls a function."""
        called = unlike(self._functions, _calls.name(function, version), function)
        made = behind((self,), pipe, (called,), options)
        made._functions[called] = function
        return made

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return pipe_method(name, lambda values, options: self.pipe(name, *values, **options), "a Dataset")

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
        """A loader that reads this dataset: see :class:`Loader` for the settings."""
        return Loader(self, **settings)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The batches as an Arrow stream: ``polars.DataFrame(ds)``, ``pyarrow.table(ds)``."""
        return self.loader().__arrow_c_stream__(requested_schema)

    def head(self, count: int = 5) -> list[dict[str, Any]]:
        """The first samples."""
        with self.loader(executor="inline", limit=count, _warns=False) as loader:
            found = []
            for sample in loader:
                found.append(sample)
                if len(found) == count:
                    break
            return found


def _unpickled(
    nodes: tuple[Node, ...], run: dict[str, Any], end: str, functions: dict[str, bytes]
) -> Dataset:
    import pickle

    return Dataset(nodes, run, end, {called: pickle.loads(part) for called, part in functions.items()})


def pipe_method(
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


def behind(inputs: tuple[Dataset, ...], name: str, values: tuple[Any, ...], options: Mapping[str, Any]) -> Dataset:
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
        end = merge(nodes, functions, dataset, shared)
        ends.append(end)
        run.update(dataset._run)
    node: Node = {"name": free(name, nodes), "pipe": name, "inputs": ends}
    for option, value in zip(_order(pipe), values, strict=False):
        node[option] = plain(name, option, value)
    if len(values) > len(pipe["options"]):
        raise TypeError(f"{name}() takes {len(pipe['options'])} options, found {len(values)}")
    spelt = {_spelt(option): option for option in _order(pipe)}
    for given, value in options.items():
        option = spelt.get(given, given)
        if option in node and option not in ("name", "pipe", "inputs"):
            raise TypeError(f"{name}() got option {option!r} twice")
        node[option] = plain(name, option, value)
    return Dataset([*nodes, node], run, node["name"], functions)


def _split(whole: Dataset) -> tuple[Dataset, ...]:
    """One dataset for each output of the last node."""
    node = whole._nodes[-1]
    ends = (f"{node['name']}.{at}" for at in range(outputs(node)))
    return tuple(Dataset(whole._nodes, whole._run, end, whole._functions) for end in ends)


def _order(pipe: Mapping[str, Any]) -> list[str]:
    return [option["name"] for option in pipe["options"]]
