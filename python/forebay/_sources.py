"""Where samples come from: files, folders, tables, and what Python has already."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forebay import _calls, plugins
from forebay._dataset import Dataset, behind, pipe_method
from forebay._native import Graph, Rows


def open(path: str | os.PathLike[str]) -> Dataset:
    """Whatever is at a path or URL: files are looked into, opened and decoded.

    Samples that fail are listed, and end the epoch with an error once all others came.
    """
    return Dataset._of(Graph.open(os.fspath(path), plugins.registry()))


def files(*paths: str | os.PathLike[str], **options: Any) -> Dataset:
    """The files at these paths, patterns or URLs: a sample for each."""
    names = [os.fspath(path) for path in paths]
    return behind((), "files", (names if len(names) != 1 else names[0],), options)


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
        found = behind((found,), "random_sampler", (), {})
    given: dict[str, Any] = {"root": root} if classes is None else {"root": root, "classes": classes}
    labelled = behind((found,), "label", (), given)
    return behind((behind((labelled,), "read", (), {}),), "rename", ("bytes=image",), {})


def from_iterable(make: Callable[[], Iterable[Any]] | Iterable[Any], *, version: str | None = None, **options: Any) -> Dataset:
    """What ``make()`` iterates over, anew in each pass; or what an object that can be iterated again and again does.

    What has ``set_epoch`` is told the loader's epoch first. If that, or its iterator, has ``state_dict`` and ``load_state_dict``, a resume goes on
    from there. Else it iterates again from the start of the pass, and passes over what was delivered.

    >>> import forebay as fb
    >>> [s["value"] for s in fb.from_iterable(lambda: iter("ab")).loader(executor="inline")]
    ['a', 'b']
    """
    if not callable(make):
        _calls.check_iterable(make, "expected a function that makes it")
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
    """The rows of a table: of pyarrow, polars, pandas, DuckDB, or whatever else has ``__arrow_c_stream__``.

    Values are those that the same table in a file gives. A sampler behind it draws rows at random.
    """
    return _source("py_indexed", Rows(data), version, options)


def _source(pipe: str, made_by: Any, version: str | None, options: Mapping[str, Any]) -> Dataset:
    called = _calls.name(made_by, version)
    made = behind((), pipe, (called,), options)
    made._functions[called] = made_by
    return made


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
        return behind(inputs, name, values, options)

    return pipe_method(name, make, "module 'forebay'")
