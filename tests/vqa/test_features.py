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
    assert features.shape(42) == (2, 3, 4)
    np.testing.assert_array_equal(features[42], GRID)
    assert features[42].dtype == dtype
    with pytest.raises(UsageError, match=f"{tmp_path}, image 43: it cannot be read"):
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
        assert features.shape(number) == (2, 3, 4)
        np.testing.assert_array_equal(features[number], GRID)


BAD = [
    (np.zeros((2, 3)), "height x width x channels was expected"),
    (np.zeros((2, 0, 3)), "height x width x channels was expected"),
    (np.zeros((2, 2, 3), dtype=np.int64), "floating point numbers or bytes were expected"),
    (b"", "it cannot be read"),
    (b"nothing of the kind", "it cannot be read"),
]


@pytest.mark.parametrize(("grid", "message"), BAD, ids=[message[:9] for _, message in BAD])
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_malformed_grids(grid, message, ending, tmp_path):
    if isinstance(grid, bytes):
        (tmp_path / f"1.{ending}").write_bytes(grid)
    else:
        write(tmp_path, [f"1.{ending}"], grid)
    features = Features.open(tmp_path)
    with pytest.raises(FeatureError, match=message):
        features.shape(1)
    with pytest.raises(FeatureError, match="no grid of features"):
        features.shape(2)


def test_half_a_file(tmp_path):
    path = write(tmp_path, ["1.npz"], np.random.default_rng(1).random((20, 20, 9))) / "1.npz"
    path.write_bytes(path.read_bytes()[:-500])
    features = Features.open(tmp_path)
    with pytest.raises(FeatureError, match="it cannot be read"):
        features.shape(1)
    with pytest.raises(UsageError, match=r"1\.npz: it cannot be read"):
        features[1]


def test_which_array(tmp_path):
    np.savez(tmp_path / "1.npz", a=GRID, b=GRID)
    with zipfile.ZipFile(tmp_path / "2.npz", "w"):
        pass
    for number in (1, 2):
        with pytest.raises(FeatureError, match="one array, or one called x, was expected"):
            Features.open(tmp_path).shape(number)


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
    assert features.shape(7) == (2, 3, 4)
    np.testing.assert_array_equal(features[42], GRID)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features))[7], GRID + 1)
    with pytest.raises(FeatureError, match="no grid"):
        features.shape(8)


def test_pictures(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    image.imsave(tmp_path / "COCO_val2014_000000000042.png", np.zeros((5, 6, 3)))
    pictures = Pictures(tmp_path)
    assert pictures[42].shape[:2] == (5, 6)
    with pytest.raises(UsageError, match="no picture of image 7"):
        pictures[7]
    with pytest.raises(UsageError, match="no such folder"):
        Pictures(tmp_path / "nowhere")[7]
