"""Text that is prepared already."""

from collections import Counter

import pytest

from fairseq_regattn.classification.malformed import Malformed
from fairseq_regattn.classification.rows import Preparation, read_prepared
from fairseq_regattn.errors import UsageError


def prepared(folder, inputs=1, how="error", **files):
    for ending, content in files.items():
        (folder / f"x.{ending}").write_bytes(content)
    how, tally = Malformed(how), Counter()
    preparation = Preparation(inputs, ("no", "yes"), "wordpunct", lowercase=True)
    rows = list(read_prepared(str(folder / "x"), preparation, how, tally))
    how.check()
    return rows, tally


def test_prepared_text_is_read_as_it_is(tmp_path):
    rows, _ = prepared(tmp_path, input0=b"A b's\r\n-\n", label=b"no\nyes\n")
    assert rows == [("no", ("A b's",), f"{tmp_path}/x:1"), ("yes", ("-",), f"{tmp_path}/x:2")]


def test_prepared_text_that_is_malformed(tmp_path):
    """Every row is told of, none is left out unseen."""
    files = {"input0": b"a\n\nb\xff\nc\nd\n", "label": b"no\nno\nno\nso\n"}
    with pytest.raises(UsageError) as error:
        prepared(tmp_path, **files)
    assert str(error.value).splitlines() == [
        f"{tmp_path}/x:2: empty input: the text has no words",
        f"{tmp_path}/x:3: not UTF-8: byte 5",
        f"{tmp_path}/x:4: unknown label: 'so' is none of no, yes",
        f"{tmp_path}/x:5: missing line: {tmp_path}/x.label has only 4 lines",
    ]
    rows, tally = prepared(tmp_path, how="skip", **files)
    assert [row.inputs for row in rows] == [("a",)]
    assert sum(count for what, count in tally.items() if "malformed" in what) == 4


def test_prepared_text_of_other_rows(tmp_path):
    with pytest.raises(UsageError, match=r"x\.input1: no such file"):
        prepared(tmp_path, 2, input0=b"a\n", label=b"no\n")
    with pytest.raises(UsageError, match=r"x\.input1: the data folder is of rows with fewer"):
        prepared(tmp_path, 1, input1=b"a\n")
