"""All 288 scores that ROUGE-1.5.5 printed for the sample data that comes with it.

25 documents, four reference headlines each, eight systems; the data has no licence to be in the
repository.
"""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from fairseq_regattn.scoring.rouge import Limit, Rouge

RAW = Path(__file__).resolve().parents[4] / "shared" / "data" / "rouge-validation"
TYPES = ("1", "2", "L", "W-1.2")
# in the order of the blocks of the file
OPTIONS = {
    "-m": Rouge(TYPES, stem=True),
    "plain": Rouge(TYPES),
    "-m -b 75": Rouge(TYPES, stem=True, limit=Limit("bytes", 75)),
}
SYSTEMS = ["11", "12", "13", "14", "21", "22", "23", "24"]
MEASURES = {"R": "recall", "P": "precision", "F": "f1"}
LINE = re.compile(r"(?P<system>\d+) ROUGE-(?P<type>\S+) Average_(?P<measure>[RPF]): (?P<score>\S+)")

pytestmark = pytest.mark.skipif(
    not RAW.is_dir(), reason=f"needs the sample data of ROUGE-1.5.5 in {RAW}"
)


@pytest.fixture(scope="module")
def texts():
    """References by document, and hypotheses by system and document."""
    references, hypotheses = defaultdict(list), defaultdict(dict)
    for line in (RAW / "sl2003.tsv").read_text(encoding="utf-8").rstrip("\n").split("\n"):
        kind, who, document, text = line.split("\t", 3)
        if kind == "model":
            references[document].append(text)
        else:
            hypotheses[who][document] = text
    return references, hypotheses


@pytest.fixture(scope="module")
def printed():
    """Scores by options and system, as ROUGE-1.5.5 printed them."""
    found = {}
    blocks = iter(OPTIONS)
    for line in (RAW / "rouge155-scores.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            options = next(blocks)
            continue
        match = LINE.fullmatch(line)
        scores = found.setdefault((options, match["system"]), {})
        scores[match["type"], MEASURES[match["measure"]]] = match["score"]
    return found


def test_they_are_288(printed):
    assert set(printed) == {(options, system) for options in OPTIONS for system in SYSTEMS}
    assert sum(map(len, printed.values())) == 288


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("options", OPTIONS)
def test_every_digit(options, system, texts, printed):
    references, hypotheses = texts
    documents = sorted(references)  # their names are 1 to 25, in this order
    assert set(documents) == set(hypotheses[system])
    averages = (
        OPTIONS[options]
        .system(
            [hypotheses[system][document] for document in documents],
            [references[document] for document in documents],
        )
        .averages()
    )
    assert {
        (name, measure): f"{getattr(averages[name], measure).value:.5f}"
        for name in TYPES
        for measure in MEASURES.values()
    } == printed[options, system]
