"""What is made once, what is made anew, and what is kept apart."""

import os
from pathlib import Path

import pytest

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.stages import (
    StageError,
    exclusive,
    partial_of,
    produce,
    rewrite,
    settings_key,
)


def test_produce_makes_once(tmp_path):
    target = tmp_path / "deep" / "file"
    assert produce(target, lambda path: path.write_text("first")) is True
    assert produce(target, lambda path: path.write_text("second")) is False
    assert target.read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("name", [".", "folder"])
def test_a_folder_is_no_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=r"is a folder, not a file to write"):
        rewrite(Path(name), b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


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


def test_a_folder_is_used_by_one_at_a_time(tmp_path):
    out = tmp_path / "out"
    refused = pytest.raises(StageError, match="another process")
    with exclusive(out), refused, exclusive(out):
        pass
    with exclusive(tmp_path / "out"):
        pass


def test_rewrite_leaves_alone_what_is_the_same(tmp_path):
    target = tmp_path / "deep" / "file"
    rewrite(target, b"one")
    os.utime(target, ns=(1, 1))
    rewrite(target, b"one")
    assert target.stat().st_mtime_ns == 1
    rewrite(target, b"two")
    assert target.read_bytes() == b"two"
    assert [path.name for path in target.parent.iterdir()] == ["file"]
