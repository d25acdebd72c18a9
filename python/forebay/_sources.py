"""Sources of samples: files, folders, tables, and Python objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forebay import _calls, plugins
from forebay._dataset import Dataset, behind, pipe_method
from forebay._native import Graph, Rows


def open(path: str | os.PathLike[str]) -> Dataset:
    """Opens any path or URL: the first bytes of its files decide how they are opened and decoded.

    Samples that fail are listed. After all others came, the epoch ends with an error.
    """
    return Dataset._of(Graph.open(os.fspath(path), plugins.registry()))


def files(*paths: str | os.PathLike[str], **options: Any) -> Dataset:
    """The files at these paths, patterns or URLs: one sample for each file."""
    names = [os.fspath(path) for path in paths]
    return behind((), "files", (names if len(names) != 1 else names[0],), options)


PICTURES = "{jpg,jpeg,png,webp,gif,bmp,tif,tiff,JPG,JPEG,PNG,WEBP,GIF,BMP,TIF,TIFF}"


def image_folder(path: str | os.PathLike[str], *, shuffle: bool = False, classes: list[str] | None = None) -> Dataset:
    """The pictures of a folder with one folder for each class: ``image``, the file's bytes, ``label``, ``class`` and
    ``path``.

    shuffle: gives all files in random order, another one in each epoch. It costs no memory, because a file is read
    when its turn comes.
    classes: the names of the folders, in the order of the labels; unless given, all folders in the order of their
    names.

    Crop and decode afterwards: ``fb.image_folder("train", shuffle=True).random_resized_crop(224).decode()``.
    """
    root = os.fspath(path)
    found = files(f"{root.rstrip('/')}/**/*.{PICTURES}", open="none")
    if shuffle:
        found = behind((found,), "random_sampler", (), {})
    given: dict[str, Any] = {"root": root} if classes is None else {"root": root, "classes": classes}
    labelled = behind((found,), "label", (), given)
    return behind((behind((labelled,), "read", (), {}),), "rename", ("bytes=image",), {})


def from_iterable(make: Callable[[], Iterable[Any]] | Iterable[Any], *, version: str | None = None, **options: Any) -> Dataset:
    """The items of the iterable that ``make()`` returns in each pass, or of an object that can be iterated
    repeatedly.

    If the iterable has ``set_epoch``, it gets the loader's epoch first. If it, or its iterator, has ``state_dict``
    and ``load_state_dict``, a resume goes on from its state. Otherwise a resume iterates again from the start of the
    pass, and skips the items that were delivered.

    >>> import forebay as fb
    >>> [s["value"] for s in fb.from_iterable(lambda: iter("ab")).loader(executor="inline")]
    ['a', 'b']
    """
    if not callable(make):
        _calls.check_iterable(make, "expected a function that makes it")
    return _source("py_source", make, version, options)


def from_indexed(items: Any, *, version: str | None = None, **options: Any) -> Dataset:
    """The samples of an object with ``__len__`` and ``__getitem__``, or of a mapping, by random access.

    A sampler behind it reads only the samples that it draws. If the object has ``__getitems__``, it is called with a
    list of numbers.

    >>> import forebay as fb
    >>> [s["value"] for s in fb.from_indexed({"a": 1, "b": 2}).loader(executor="inline")]
    [1, 2]
    """
    if not hasattr(items, "__len__") or not hasattr(items, "__getitem__"):
        raise TypeError(f"found {type(items).__name__}, expected an object with __len__ and __getitem__")
    return _source("py_indexed", items, version, options)


def from_list(items: Iterable[Any], *, version: str | None = None, **options: Any) -> Dataset:
    """Samples from a list: each is a ``dict`` or a single value. The list is stored once, for all worker processes."""
    from forebay._lists import Items

    return _source("py_indexed", Items(items), version, options)


def from_arrow(data: Any, *, version: str | None = None, **options: Any) -> Dataset:
    """The rows of a table of pyarrow, polars, pandas, DuckDB, or any object with ``__arrow_c_stream__``.

    Values are the same as from a file with the same table. A sampler behind it draws rows at random.
    """
    return _source("py_indexed", Rows(data), version, options)


def _source(pipe: str, made_by: Any, version: str | None, options: Mapping[str, Any]) -> Dataset:
    called = _calls.name(made_by, version)
    made = behind((), pipe, (called,), options)
    made._functions[called] = made_by
    return made


def __getattr__(name: str) -> Callable[..., Dataset]:
    """Makes every source, and every pipe that reads several datasets, a function: ``fb.range(10)``, ``fb.mix([a, b])``."""
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
