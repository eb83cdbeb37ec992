"""What ROUGE cannot compute: one message that names the argument and the value."""

import pytest

from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.scoring.rouge import Limit, Rouge


@pytest.mark.parametrize("name", ["1", "9", "L", "Lsum", "W-1.2", "W-2", "W-1.01", "W-4"], ids=str)
def test_types(name):
    assert set(Rouge((name,)).document("a b", ["a b"])) == {name}


# --- what is refused


@pytest.mark.parametrize(
    "name",
    [
        *("0", "10", "", "l", "LSum", "1 ", "-1", "S4", "SU", "rouge", "²", "\n1", "1\n"),
        *("W", "W-", "W-1", "W-1.0", "W-0.5", "W-.5", "W-4.01", "W-100", "W-1e1"),
        *("W-nan", "W-inf", "W--2"),
    ],
    ids=repr,
)
def test_unknown_types(name):
    with pytest.raises(ArgumentError) as caught:
        Rouge(("2", name))
    expected = "types must be 1 to 9, L, Lsum, or W- and a power above 1 up to 4, as W-1.2, got "
    assert str(caught.value) == expected + repr("" if name == "rouge" else name)


def test_types_by_the_names_of_others():
    names = ("rouge1", "ROUGE-2", "rougeL", "rougeLsum", "Rouge-W-1.2")
    assert Rouge(names) == Rouge(("1", "2", "L", "Lsum", "W-1.2"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": ()}, "types must be at least one type, each once, got ()"),
        (
            {"types": ("1", "L", "1")},
            "types must be at least one type, each once, got ('1', 'L', '1')",
        ),
        ({"several": "worst"}, "several must be average or best or jackknife, got 'worst'"),
        (
            {"limit": Limit("bytes", 0)},
            "limit must be a Limit of at least 1 'bytes' or 'words', got "
            "Limit(unit='bytes', size=0)",
        ),
        (
            {"limit": Limit("lines", 5)},
            "limit must be a Limit of at least 1 'bytes' or 'words', got "
            "Limit(unit='lines', size=5)",
        ),
        ({"limit": 75}, "limit must be a Limit of at least 1 'bytes' or 'words', got 75"),
        ({"types": "1,2"}, "types must be several names, such as ('1', '2', 'L'), got '1,2'"),
        ({"types": (1, 2)}, "types must be several names, such as ('1', '2', 'L'), got (1, 2)"),
        (
            {"types": ("1", "rouge1")},
            "types must be at least one type, each once, got ('1', 'rouge1')",
        ),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ArgumentError) as caught:
        Rouge(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("several", "references", "message"),
    [
        ("average", [], "0 references, where at least 1 are needed"),
        ("best", [], "0 references, where at least 1 are needed"),
        ("jackknife", ["a"], "1 references, where at least 2 are needed"),
    ],
)
def test_missing_references(several, references, message):
    rouge = Rouge(several=several)
    with pytest.raises(UsageError, match=message):
        rouge.document("a", references)
    with pytest.raises(UsageError, match=message):
        rouge.system(["a", "b"], [["a", "b"], references])


@pytest.mark.parametrize(
    ("hypotheses", "references", "names", "message"),
    [
        (["a"], [["a"], ["b"]], None, "1 hypotheses do not fit references of 2 documents"),
        ([], [], None, "there are no hypotheses to score"),
        (["a"], [["a"]], ["x", "y"], "2 names do not fit 1 hypotheses"),
        (["a"], [["a"]], [], "0 names do not fit 1 hypotheses"),
    ],
)
def test_what_does_not_fit(hypotheses, references, names, message):
    with pytest.raises(UsageError, match=message):
        Rouge().system(hypotheses, references, names)


def test_a_text_is_not_taken_for_several_references():
    with pytest.raises(ArgumentError, match=r"references must be texts, \[text\] if there is one"):
        Rouge().system(["the cat sat"], ["the cat sat down"])


def test_systems_that_cannot_be_compared():
    one = Rouge().system(["a"], [["a"]])
    with pytest.raises(ArgumentError, match="measure must be recall or precision or f1, got 'f'"):
        one.p_values(one, "f")
    others = [
        Rouge(stem=True).system(["a"], [["a"]]),
        Rouge().system(["a"], [["a", "b"]]),
        Rouge().system(["a", "b"], [["a"], ["b"]]),
        Rouge().system(["a"], [["a"]], ["another"]),
    ]
    for other in others:
        with pytest.raises(UsageError) as caught:
            one.p_values(other)
        assert str(caught.value) == (
            "systems are compared on the same documents and scores, got "
            f"1 with {one.signature} and {len(other.documents)} with {other.signature}"
        )
