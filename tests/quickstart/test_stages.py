"""What is made once, what is made anew, and what is kept apart."""

import gzip

import pytest

from fairseq_regattn.quickstart import corpus
from fairseq_regattn.quickstart.__main__ import open_workspace
from fairseq_regattn.quickstart.options import parse
from fairseq_regattn.recipes.stages import (
    StageError,
    exclusive,
    partial_of,
    produce,
    settings_key,
)


def test_produce_makes_once(tmp_path):
    target = tmp_path / "deep" / "file"
    assert produce(target, lambda path: path.write_text("first")) is True
    assert produce(target, lambda path: path.write_text("second")) is False
    assert target.read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_what_failed_is_made_anew(tmp_path):
    target = tmp_path / "folder"

    def half(path):
        path.mkdir()
        (path / "half").touch()
        raise RuntimeError("half-way")

    def whole(path):
        path.mkdir()
        (path / "whole").touch()

    with pytest.raises(RuntimeError):
        produce(target, half)
    assert not target.exists()
    assert (partial_of(target) / "half").exists()
    assert produce(target, whole)
    assert [path.name for path in target.iterdir()] == ["whole"]
    assert not partial_of(target).exists()


def test_settings_key_tells_where_one_setting_ends():
    keys = {
        settings_key(b"ab", b"c"),
        settings_key(b"a", b"bc"),
        settings_key(b"abc"),
        settings_key(b"abc", b""),
    }
    assert len(keys) == 4
    assert settings_key(b"ab", b"c") == settings_key(b"ab", b"c")


def test_other_settings_have_another_folder(tmp_path, write_corpus):
    tiny = write_corpus(tmp_path / "tiny.gz", 8)

    def folder(*arguments, verses=tiny, pieces=60):
        chosen = parse(["--output", str(tmp_path), *arguments])
        return open_workspace(chosen, verses, pieces).folder

    same = folder()
    assert folder("--attention", "oscarmax") == same  # models lie side by side
    others = [
        folder("optimization.max_update=9"),
        folder("optimization.max_update=10"),
        folder(pieces=61),
        folder(verses=write_corpus(tmp_path / "other.gz", 9)),
    ]
    assert len({same, *others}) == 5


def test_a_folder_is_used_by_one_at_a_time(tmp_path):
    out = tmp_path / "out"
    refused = pytest.raises(StageError, match="another quick start")
    with exclusive(out), refused, exclusive(out):
        pass
    with exclusive(tmp_path / "out"):
        pass


def test_packaged_corpus_is_what_its_provenance_says():
    rows = []
    with gzip.open(corpus.PACKAGED, "rt", encoding="utf-8") as lines:
        for line in lines:
            rows.append(line.rstrip("\n").split("\t"))
    assert {len(row) for row in rows} == {4}
    provenance = corpus.PACKAGED.with_name("SOURCE.txt").read_text(encoding="utf-8")
    for split in ("train", "valid", "test"):
        assert f"{sum(row[0] == split for row in rows)}  kept, {split}" in provenance
    assert f"{len(rows):,} verse pairs" in provenance
    assert max(len(side.split()) for row in rows for side in row[2:]) == 20
    assert min(len(side.split()) for row in rows for side in row[2:]) > 0
    for column in (1, 2, 3):
        assert len({row[column] for row in rows}) == len(rows)
    chapters = {
        split: {row[1].rsplit(".", 1)[0] for row in rows if row[0] == split}
        for split in ("train", "valid", "test")
    }
    assert not chapters["train"] & chapters["test"]
    assert not chapters["train"] & chapters["valid"]
    assert not chapters["valid"] & chapters["test"]
    assert corpus.PACKAGED.stat().st_size < 1_000_000
