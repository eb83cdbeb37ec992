"""Pharaoh format, and the command that scores it."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.analysis.links import main, read_links, write_links
from fairseq_regattn.errors import UsageError

LINK = st.tuples(st.integers(0, 99), st.integers(0, 99))


@pytest.mark.parametrize("name", ["gold.links", "gold.links.gz"])
def test_sure_and_possible(tmp_path, name):
    path = tmp_path / name
    with (gzip.open if name.endswith("gz") else open)(path, "wt", encoding="utf-8") as file:
        file.write("0-0 1p2 10?3\n\n2-1 2p1\r\n")
    first, empty, both = read_links(path)
    assert first.sure == {(0, 0)}
    assert first.possible == {(0, 0), (1, 2), (10, 3)}
    assert (empty.sure, empty.possible) == (set(), set())
    assert both.sure == both.possible == {(2, 1)}


def test_indices_from_one(tmp_path):
    path = tmp_path / "gold"
    path.write_text("1-2 3p1\n")
    (links,) = read_links(path, first=1)
    assert (links.sure, links.possible) == ({(0, 1)}, {(0, 1), (2, 0)})
    path.write_text("1-2\n3-0\n")
    with pytest.raises(UsageError, match=r"gold, line 2: '3-0' is no link.*from 1"):
        read_links(path, first=1)


@pytest.mark.parametrize(
    "token", ["0", "0--1", "-1-2", "0-1-2", "0:1", "a-b", "0-1/P", "²-0", "1-"]
)
def test_what_is_no_link_is_named(tmp_path, token):
    path = tmp_path / "gold"
    path.write_text(f"0-0\n0-0 {token}\n", encoding="utf-8")
    with pytest.raises(UsageError) as error:
        read_links(path)
    assert f"{path}, line 2: {token!r}" in str(error.value)


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "gold"
    path.write_bytes(b"0-0\n\xff-1\n")
    with pytest.raises(UsageError, match="line 2"):
        read_links(path)
    packed = tmp_path / "gold.gz"
    for content in (b"0-0\n", gzip.compress(b"0-0\n" * 999)[:-9]):
        packed.write_bytes(content)
        with pytest.raises(UsageError, match=r"gold\.gz cannot be unpacked"):
            read_links(packed)


@given(st.lists(st.sets(LINK), max_size=5))
def test_round_trip(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("links") / "links"
    write_links(path, [sorted(links, reverse=True) for links in sentences])
    read = read_links(path)
    assert [links.sure for links in read] == sentences
    assert [links.possible for links in read] == sentences


def test_writing_is_complete_or_not_at_all(tmp_path):
    path = tmp_path / "links"
    write_links(path, [[(10, 0), (9, 1)]])
    assert path.read_text() == "9-1 10-0\n"

    def broken():
        yield [(5, 5)]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_links(path, broken())
    assert path.read_text() == "9-1 10-0\n"


def test_the_command(tmp_path, run_python, package_dir):
    (tmp_path / "predicted").write_text("0-0 1-1\n0p0\n")  # however written, a prediction
    (tmp_path / "gold").write_text("1-1 2p2 3-3\n2-2\n")
    command = ("-m", "fairseq_regattn.analysis.links", "predicted", "gold", "--gold-first", "1")
    result = run_python(*command, path=[package_dir.parent])
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["AER", "0.5000"],  # 1 - (1 + 2) / (3 + 3)
        ["precision", "0.6667"],
        ["recall", "0.3333"],
        ["F1", "0.4444"],
        ["predicted", "3", "links"],
        ["sure", "3", "links"],
        ["possible", "4", "links"],
        ["sentences", "2"],
    ]
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("1-1 x\n", "gold, line 1: 'x' is no link"),
        ("1-1\n1-1\n", "got 1 predicted and 2 gold"),
        (None, "No such file"),
    ],
)
def test_errors_of_the_command_are_one_line(tmp_path, capsys, gold, message):
    (tmp_path / "predicted").write_text("0-0\n")
    if gold is not None:
        (tmp_path / "gold").write_text(gold)
    assert main([str(tmp_path / "predicted"), str(tmp_path / "gold")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1
