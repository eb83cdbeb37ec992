"""Grids in files and folders."""

import pickle
import zipfile

import numpy as np
import pytest

from fairseq_regattn.errors import UsageError
from fairseq_regattn.vqa.features import FeatureError, Features, Pictures, image_number

GRID = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("42", 42),
        ("COCO_train2014_000000000042", 42),
        ("COCO_train2014_000000000042.jpg", 42),
        ("0", 0),
        ("image", None),
        ("42_a", None),
        ("", None),
    ],
)
def test_numbers_of_images(name, number):
    assert image_number(name) == number


def write(folder, names, grid=GRID, **more):
    for name in names:
        if name.endswith(".npy"):
            np.save(folder / name, grid)
        else:
            np.savez_compressed(folder / name, x=grid, **more)
    return folder


@pytest.mark.parametrize("names", [["42.npy"], ["COCO_val2014_000000000042.npz"]])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8])
def test_a_folder(names, dtype, tmp_path):
    features = Features.open(write(tmp_path, [*names, "7.npz"], GRID.astype(dtype), boxes=GRID))
    assert 42 in features
    assert 43 not in features
    assert features.describe(42) == ((2, 3, 4), dtype)
    np.testing.assert_array_equal(features[42], GRID)
    assert features[42].dtype == dtype
    with pytest.raises(
        UsageError, match=rf"{tmp_path}, image 43: it cannot be read \(no grid of features\)"
    ):
        features[43]


def test_a_file_is_read_when_asked_for(tmp_path):
    features = Features.open(write(tmp_path, ["42.npz"]))
    write(tmp_path, ["42.npz"], GRID + 1)
    np.testing.assert_array_equal(features[42], GRID + 1)
    mapped = Features.open(write(tmp_path, ["43.npy"]))[43]
    assert isinstance(mapped, np.memmap)


def test_channels_first(tmp_path):
    features = Features.open(write(tmp_path, ["1.npy", "2.npz"], np.moveaxis(GRID, -1, 0)), True)
    for number in (1, 2):
        assert features.describe(number)[0] == (2, 3, 4)
        np.testing.assert_array_equal(features[number], GRID)


BAD = [
    (np.zeros((2, 3)), "height x width x channels was expected"),
    (np.zeros((2, 0, 3)), "height x width x channels was expected"),
    (np.zeros((2, 2, 3), dtype=np.int64), "uint8, float16, float32, float64 were expected"),
    (np.zeros((2, 2, 3), dtype=np.complex64), "uint8, .* were expected, got complex64"),
    (np.zeros((2, 2, 3), dtype=object), "it cannot be read|were expected, got object"),
    (b"", "it cannot be read"),
    (b"nothing of the kind", "it cannot be read"),
]
if np.dtype(np.longdouble).itemsize > 8:  # torch has nothing that wide
    BAD.append((np.zeros((2, 2, 3), dtype=np.longdouble), "uint8, .* were expected, got float"))


@pytest.mark.parametrize(("grid", "message"), BAD)
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_malformed_grids(grid, message, ending, tmp_path):
    if isinstance(grid, bytes):
        (tmp_path / f"1.{ending}").write_bytes(grid)
    else:
        write(tmp_path, [f"1.{ending}"], grid)
    features = Features.open(tmp_path)
    with pytest.raises(FeatureError, match=message):
        features.describe(1)
    with pytest.raises(FeatureError, match="no grid of features"):
        features.describe(2)


def test_half_a_file(tmp_path):
    path = write(tmp_path, ["1.npz"], np.random.default_rng(1).random((20, 20, 9))) / "1.npz"
    path.write_bytes(path.read_bytes()[:-500])
    features = Features.open(tmp_path)
    with pytest.raises(FeatureError, match="it cannot be read"):
        features.describe(1)
    with pytest.raises(UsageError, match=r"1\.npz: it cannot be read"):
        features[1]


def changed(place, value):
    """Bytes of the archive's directory, and of the entry itself."""

    def change(path):
        content = bytearray(path.read_bytes())
        start = content.find(b"PK\1\2")
        content[start + place] = content[place - 2] = value
        path.write_bytes(content)

    return change


def header(text):
    def change(path):
        with zipfile.ZipFile(path, "w") as archive:
            size = len(text).to_bytes(2, "little")
            archive.writestr("x.npy", b"\x93NUMPY\1\0" + size + text)

    return change


SPOILED = {
    "another method": changed(10, 99),
    "encrypted": changed(8, 1),
    "no header": header(b"(" * 5000),
    "code": header(b"__import__('os')"),
    "negative": header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, -4)}"),
    "not an archive": lambda path: path.write_bytes(pickle.dumps(GRID)),
}


@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_archives(how, tmp_path):
    SPOILED[how](write(tmp_path, ["1.npz"]) / "1.npz")
    with pytest.raises(FeatureError):
        Features.open(tmp_path).describe(1)
    with pytest.raises(UsageError, match=r"1\.npz: it cannot be read"):
        Features.open(tmp_path)[1]


def test_an_archive_with_the_other_ending(tmp_path):
    (write(tmp_path, ["1.npz"]) / "1.npz").rename(tmp_path / "1.npy")
    with pytest.raises(FeatureError, match="it cannot be read"):
        Features.open(tmp_path).describe(1)
    with pytest.raises(UsageError, match=r"1\.npy: it cannot be read"):
        Features.open(tmp_path)[1]


def test_which_array(tmp_path):
    np.savez(tmp_path / "1.npz", a=GRID, b=GRID)
    with zipfile.ZipFile(tmp_path / "2.npz", "w"):
        pass
    for number in (1, 2):
        with pytest.raises(FeatureError, match="one array, or one called x, was expected"):
            Features.open(tmp_path).describe(number)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(UsageError, match="nowhere: no such file or folder of features"):
        Features.open(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"has no \.npz or \.npy files"):
        Features.open(tmp_path)
    with pytest.raises(UsageError, match=r"1\.npy and 1\.npz are of one image"):
        Features.open(write(tmp_path, ["1.npy", "1.npz"]))
    (tmp_path / "1.npy").unlink()
    with pytest.raises(UsageError, match="1 and a_01 are both of image 1"):
        Features.open(write(tmp_path, ["a_01.npz"]))
    with pytest.raises(UsageError, match=r"features are a folder .* or a file that ends in \.h5"):
        Features.open(tmp_path / "1.npz")


def test_hdf5_needs_h5py(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    (tmp_path / "x.h5").touch()
    with pytest.raises(UsageError, match=r"x\.h5 needs h5py: pip install h5py$"):
        Features.open(tmp_path / "x.h5")


@pytest.mark.parametrize("layout", ["datasets", "rows"])
def test_hdf5(layout, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        if layout == "rows":
            file["ids"], file["features"] = [42, 7], np.stack([GRID, GRID + 1])
        else:
            file["COCO_train2014_000000000042"], file["7"] = GRID, GRID + 1
    features = Features.open(tmp_path / "x.h5")
    assert features.describe(7) == ((2, 3, 4), np.float32)
    np.testing.assert_array_equal(features[42], GRID)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features))[7], GRID + 1)
    with pytest.raises(FeatureError, match="no grid"):
        features.describe(8)


def test_pictures(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    image.imsave(tmp_path / "COCO_val2014_000000000042.png", np.zeros((5, 6, 3)))
    pictures = Pictures(tmp_path)
    assert pictures[42].shape[:2] == (5, 6)
    with pytest.raises(UsageError, match="no picture of image 7"):
        pictures[7]
    (tmp_path / "8.png").write_bytes(b"nothing of the kind")
    with pytest.raises(UsageError, match=r"8\.png: it cannot be read"):
        Pictures(tmp_path)[8]
    with pytest.raises(UsageError, match="no such folder"):
        Pictures(tmp_path / "nowhere")[7]


@pytest.mark.parametrize(
    "content",
    [
        {"ids": ["a", "b"], "features": np.stack([GRID, GRID])},
        {"ids": [[1, 2]], "features": np.stack([GRID, GRID])},
        {"ids": [1.5, 2.5], "features": np.stack([GRID, GRID])},
        {"ids": [1], "features": np.stack([GRID, GRID])},
        {"ids": [1, -2], "features": np.stack([GRID, GRID])},
        {"ids": 1, "features": np.stack([GRID])},
        {"ids/1": [1], "features": np.stack([GRID])},
        {"ids": [1], "features/1": GRID},
        {"image": GRID},
    ],
    ids=range(9),
)
def test_hdf5_of_another_layout(content, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, value in content.items():
            file[name] = value
    with pytest.raises(UsageError, match=r"x\.h5"):
        Features.open(tmp_path / "x.h5")


def test_hdf5_of_groups(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["1/x"] = GRID
    with pytest.raises(FeatureError, match="it cannot be read"):
        Features.open(tmp_path / "x.h5").describe(1)
