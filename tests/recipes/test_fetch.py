"""Downloads: mtdata itself is not asked for text, as tests use no network."""

import importlib.util
import sys

import pytest

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes import fetch as module
from fairseq_regattn.recipes.fetch import fetch, reversed_side
from fairseq_regattn.recipes.load import CONFIGS, load_recipe

DATASETS = {
    "train": ["OPUS-setimes-v2-eng-ron", "Statmt-europarl-7-ron-eng"],
    "valid": ["Statmt-newsdev_roen-2016-ron-eng"],
    "test": ["Statmt-newstest_roen-2016-ron-eng"],
}
FAKE = """
import sys
assert sys.argv[1] == "echo", sys.argv
dataset = sys.argv[2]
first, second = dataset.split("-")[-2:]
for line in range(2):
    print(f"{first} {line} {dataset}\\t{second} {line} ș\\t{{}}")
if "single" in dataset:
    print("one side")
if "broken" in dataset:
    sys.exit("Traceback\\nConnectionError: no network\\n")
"""

needs_mtdata = pytest.mark.skipif(
    importlib.util.find_spec("mtdata") is None, reason="mtdata is not installed"
)


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """``mtdata`` that makes up two lines for each data set."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    monkeypatch.setattr(
        module, "command", lambda name, *arguments: [sys.executable, script, *arguments]
    )


@needs_mtdata
@pytest.mark.parametrize("direction", [("ro", "en"), ("en", "ro")])
def test_sides_get_the_languages_of_the_recipe(fake, tmp_path, direction):
    fetch(DATASETS, tmp_path / "raw", *direction)
    train = {lang: (tmp_path / "raw" / f"train.{lang}").read_text("utf-8") for lang in direction}
    assert [line.split()[0] for line in train["ro"].splitlines()] == ["ron"] * 4
    assert [line.split()[:2] for line in train["en"].splitlines()] == [
        ["eng", "0"],
        ["eng", "1"],
        ["eng", "0"],
        ["eng", "1"],
    ]
    assert {path.name for path in (tmp_path / "raw").iterdir()} == {
        f"{split}.{language}" for split in DATASETS for language in direction
    }
    assert "{}" not in train["ro"] + train["en"]


@needs_mtdata
def test_a_failed_download_names_the_data_set_and_leaves_nothing(fake, tmp_path):
    datasets = {**DATASETS, "train": ["OPUS-setimes-v2-eng-ron", "OPUS-broken-v2-eng-ron"]}
    with pytest.raises(UsageError) as error:
        fetch(datasets, tmp_path / "raw", "ro", "en")
    message = str(error.value)
    assert "OPUS-broken-v2-eng-ron (ConnectionError: no network)" in message
    assert "--data DIR" in message
    assert "\n" not in message
    assert not (tmp_path / "raw").exists()


@needs_mtdata
def test_a_line_that_is_no_pair_names_the_data_set(fake, tmp_path):
    datasets = {**DATASETS, "train": ["OPUS-single-v2-eng-ron"]}
    with pytest.raises(UsageError, match="OPUS-single-v2-eng-ron: line 3 is no pair"):
        fetch(datasets, tmp_path / "raw", "ro", "en")
    assert not (tmp_path / "raw").exists()


@needs_mtdata
@pytest.mark.parametrize(
    "wrong", ["Statmt-europarl-7-deu-eng", "Statmt-europarl-7-ron-xx9", "europarl", "a-b-ron-eng"]
)
def test_data_sets_of_other_languages_are_refused_before_anything_is_downloaded(tmp_path, wrong):
    with pytest.raises(UsageError, match=f"data.mtdata: {wrong}"):
        fetch({**DATASETS, "train": [wrong]}, tmp_path / "raw", "ro", "en")
    assert not (tmp_path / "raw").exists()


@needs_mtdata
def test_a_split_without_data_sets(tmp_path):
    with pytest.raises(UsageError, match=r"no data set to download for valid, test: .*--data"):
        fetch({"train": DATASETS["train"], "test": []}, tmp_path / "raw", "ro", "en")


def test_without_mtdata_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'pip install "fairseq-regattn\[recipes\]".*--data DIR'):
        fetch(DATASETS, tmp_path / "raw", "ro", "en")


@needs_mtdata
@pytest.mark.slow
def test_mtdata_knows_the_data_sets_of_all_recipes(run_python, monkeypatch, tmp_path):
    """And they are of the right languages. The index of mtdata takes a while to make."""
    monkeypatch.setenv("MTDATA", str(tmp_path / "cache"))
    wanted = set()
    for path in (CONFIGS / "translation").glob("*.yaml"):
        data = load_recipe(path).data
        for datasets in data.mtdata.values():
            wanted.update(datasets)
            for dataset in datasets:
                reversed_side(dataset, data.source, data.target)
    assert len(wanted) > 20
    listed = run_python("-m", "mtdata", "list", "-id").stdout.split()
    assert wanted - set(listed) == set()
