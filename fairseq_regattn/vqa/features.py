"""Grids of features or pixels, ``height x width x channels``, one an image, read when asked for.

A folder has a file an image, ``.npz`` (with one array, or one called ``x``) or ``.npy``; an HDF5
file (needs h5py) has a dataset an image, or the two datasets ``features`` and ``ids``. Images are
known by a number, which files and datasets are named by: ``42``, ``COCO_train2014_000000000042``
and ``COCO_train2014_000000000042.jpg`` are all image 42.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_regattn.errors import UsageError

NAME = re.compile(r"(?:.*_)?(\d+)(?:\.jpe?g|\.png)?", re.IGNORECASE)
ENDINGS = (".npz", ".npy")
HDF5 = (".h5", ".hdf5")
READABLE = (np.uint8, np.float16, np.float32, np.float64)

Shape = tuple[int, int, int]


class FeatureError(Exception):
    """An image's grid is missing or malformed; says what is wrong, not of which image."""


def image_number(name: str) -> int | None:
    """The number of the image that a file or a dataset is named by; None: it is not named so."""
    found = NAME.fullmatch(name)
    return None if found is None else int(found[1])


def by_number(names: Mapping[str, Any], where: Path) -> dict[int, Any]:
    """What is named by images, by their numbers.

    Raises:
        UsageError: two are of one image.
    """
    found: dict[int, Any] = {}
    first: dict[int, str] = {}
    for name, what in names.items():
        number = image_number(name)
        if number is None:
            continue
        if number in found:
            raise UsageError(f"{where}: {first[number]} and {name} are both of image {number}")
        found[number], first[number] = what, name
    return found


class Features:
    """Grids by the number of their image; nothing is kept in memory.

    Args:
        path: a folder, or an HDF5 file.
        channels_first: they are stored as ``channels x height x width``.

    Raises:
        UsageError: no such file or folder, it has no grids, or h5py is missing.
    """

    def __init__(self, path: Path, channels_first: bool = False):
        self.path = path
        self.channels_first = channels_first

    @staticmethod
    def open(path: Path, channels_first: bool = False) -> Features:
        """Of either kind."""
        if path.is_dir():
            return FolderFeatures(path, channels_first)
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder of features")
        if path.suffix.lower() not in HDF5:
            raise UsageError(
                f"{path}: features are a folder of {' or '.join(ENDINGS)} files, or a file that"
                f" ends in {' or '.join(HDF5)}"
            )
        return HDF5Features(path, channels_first)

    def __contains__(self, number: int) -> bool:
        raise NotImplementedError

    def place(self, number: int) -> str:
        """Where the grid of an image is, for messages."""
        return f"{self.path}, image {number}"

    def describe(self, number: int) -> tuple[Shape, np.dtype]:
        """``(height, width, channels)`` and the type of its numbers, without reading the grid.

        Raises:
            FeatureError: there is none, or it is no grid of numbers.
        """
        if number not in self:
            raise FeatureError("no grid of features")
        try:
            shape, dtype = self._header(number)
        except Exception as error:  # readers of broken files raise anything
            raise FeatureError(f"it cannot be read ({error})") from None
        if len(shape) != 3 or min(shape) < 1:
            raise FeatureError(f"height x width x channels was expected, got shape {shape}")
        if dtype.newbyteorder("=") not in READABLE:
            allowed = ", ".join(kind.__name__ for kind in READABLE)
            raise FeatureError(f"{allowed} were expected, got {dtype}")
        height, width, channels = (*shape[1:], shape[0]) if self.channels_first else shape
        return (height, width, channels), dtype

    def __getitem__(self, number: int) -> np.ndarray:
        """The grid of an image, ``height x width x channels``.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        try:
            if number not in self:
                raise FeatureError("no grid of features")
            grid = self._read(number)
        except Exception as error:
            raise UsageError(f"{self.place(number)}: it cannot be read ({error})") from None
        return np.moveaxis(grid, 0, -1) if self.channels_first else grid

    def _header(self, number: int) -> tuple[tuple[int, ...], np.dtype]:
        raise NotImplementedError

    def _read(self, number: int) -> np.ndarray:
        raise NotImplementedError


class FolderFeatures(Features):
    """A file an image."""

    def __init__(self, path: Path, channels_first: bool = False):
        super().__init__(path, channels_first)
        names = {}
        for name in sorted(os.listdir(path)):
            stem, ending = os.path.splitext(name)
            if ending in ENDINGS:
                names[stem] = name if stem not in names else None
        twice = [stem for stem, name in names.items() if name is None]
        if twice:
            raise UsageError(f"{path}: {twice[0]}.npy and {twice[0]}.npz are of one image")
        self.names: dict[int, str] = by_number(names, path)
        if not self.names:
            wanted = f"{' or '.join(ENDINGS)} files that are named by the number of an image"
            raise UsageError(f"{path} has no {wanted}")

    def __contains__(self, number: int) -> bool:
        return number in self.names

    def place(self, number: int) -> str:
        name = self.names.get(number)
        return super().place(number) if name is None else str(self.path / name)

    def _header(self, number: int) -> tuple[tuple[int, ...], np.dtype]:
        path = self.path / self.names[number]
        if path.suffix == ".npy":
            grid = _mapped(path)
            return grid.shape, grid.dtype
        with zipfile.ZipFile(path) as archive, archive.open(_member(archive.namelist())) as file:
            version = np.lib.format.read_magic(file)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }.get(version)
            if read is None:
                raise ValueError(f"version {version} of the format, and no numbers")
            shape, _, dtype = read(file)
            return shape, dtype

    def _read(self, number: int) -> np.ndarray:
        path = self.path / self.names[number]
        if path.suffix == ".npy":
            return _mapped(path)
        with np.load(path) as archive:
            return archive[_member(archive.files)]


class HDF5Features(Features):
    """A file for all images; each process opens it for itself."""

    def __init__(self, path: Path, channels_first: bool = False):
        super().__init__(path, channels_first)
        try:
            import h5py
        except ImportError:
            raise UsageError(f"{path} needs h5py: pip install h5py") from None
        self._opened: tuple[int, Any] | None = None
        try:
            with h5py.File(path, "r") as file:
                self.rows = self._index(file)
        except UsageError:
            raise
        except Exception as error:  # h5py raises anything
            raise UsageError(f"{path}: no HDF5 file of features ({error})") from None
        if not self.rows:
            raise UsageError(f"{path} has no datasets named by images, and no features and ids")

    def _index(self, file: Any) -> dict[int, Any]:
        """Number of the image -> name of its dataset, or its row of ``features``."""
        if "features" in file and "ids" in file:
            ids, features = file["ids"][()], file["features"]
            if ids.ndim != 1 or ids.dtype.kind not in "iu" or min(ids, default=0) < 0:
                raise UsageError(f"{self.path}: ids must be a row of whole numbers, none negative")
            numbers = {number: row for row, number in enumerate(ids.tolist())}
            if len(numbers) < len(ids) or len(ids) != features.shape[0]:
                raise UsageError(f"{self.path}: ids must be as many as features, all different")
            return numbers
        return by_number({name: name for name in file}, self.path)

    def __contains__(self, number: int) -> bool:
        return number in self.rows

    @property
    def file(self) -> Any:
        if self._opened is None or self._opened[0] != os.getpid():
            import h5py

            self._opened = os.getpid(), h5py.File(self.path, "r")
        return self._opened[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def _header(self, number: int) -> tuple[tuple[int, ...], np.dtype]:
        row = self.rows[number]
        if isinstance(row, str):
            return self.file[row].shape, self.file[row].dtype
        return self.file["features"].shape[1:], self.file["features"].dtype

    def _read(self, number: int) -> np.ndarray:
        row = self.rows[number]
        return self.file[row][()] if isinstance(row, str) else self.file["features"][row]


class Pictures:
    """Pictures to be shown, by the number of their image: a folder of ``.jpg`` or ``.png``."""

    def __init__(self, path: Path):
        self.path = path

    @cached_property
    def names(self) -> dict[int, str]:
        if not self.path.is_dir():
            raise UsageError(f"{self.path}: no such folder of pictures")
        names = [name for name in sorted(os.listdir(self.path)) if not name.endswith(ENDINGS)]
        return by_number({name: name for name in names}, self.path)

    def __getitem__(self, number: int) -> np.ndarray:
        """``height x width x channels``.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        from matplotlib.image import imread

        if number not in self.names:
            raise UsageError(f"{self.path} has no picture of image {number}")
        path = self.path / self.names[number]
        try:
            return imread(path)
        except Exception as error:
            raise UsageError(f"{path}: it cannot be read ({error})") from None


def _mapped(path: Path) -> np.ndarray:
    """An ``.npy`` file: ``np.load`` would take other kinds for one, by what they hold."""
    return np.lib.format.open_memmap(path, mode="r")


def _member(names: list[str]) -> str:
    """The array of an ``.npz`` file."""
    if len(names) == 1:
        return names[0]
    for name in ("x.npy", "x"):
        if name in names:
            return name
    raise ValueError(f"one array, or one called x, was expected, got {', '.join(names) or 'none'}")
