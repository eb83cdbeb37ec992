"""A record of a run, with what a test wants to change."""

from dataclasses import replace

import pytest

from fairseq_regattn.analysis import AlignmentStatistics, Record
from fairseq_regattn.scoring.classification import ClassScores, interval

RECORD = Record(
    recipe="toy",
    direction="ro-en",
    settings="0f0f0f0f",
    attention="softmax",
    name="softmax",
    mapping="softmax",
    seed=1,
    bleu=20.0,
    chrf=40.0,
    tokenised_bleu=None,
    signatures={"bleu": "nrefs:1|tok:13a", "chrf": "nrefs:1|nc:6"},
    valid_ppl=12.5,
    updates=100,
    training_seconds=200.0,
    processor_seconds=None,
    tokens_per_second=3000.5,
    alignments=AlignmentStatistics(steps=9, nonzero=1.0, segments=14.5, entropy=2.5),
    links=None,
    sentences=4,
    test_key="testtesttesttest",
    hypotheses_key="hyphyphyphyphyph",
    date="2026-11-30",
    machine="2 cores, 8 GB, some CPU, Linux x86_64",
    versions={"python": "3.11.2", "sacrebleu": "2.6.0"},
    command="fairseq-hydra-train 'common.user_dir=ă b'",
)


NLI = ["entailment", "neutral"]


@pytest.fixture
def classified(record):
    """``classified([[3, 1], [0, 2]], "sparsemax")``: a run of a classifier, by its confusion."""

    def make(confusion, name="softmax", labels=NLI, **changes):
        right = sum(row[i] for i, row in enumerate(confusion))
        accuracy = interval(right, sum(map(sum, confusion)))
        unscored = dict.fromkeys(("bleu", "chrf", "tokenised_bleu", "valid_ppl"))
        kept = {"recipe": "snli", "direction": "snli", "signatures": {}, **unscored, **changes}
        return record(name, classes=ClassScores(list(labels), confusion, accuracy), **kept)

    return make


@pytest.fixture
def record():
    """``record(seed=2)``; ``record("fusedmax-lambda0.1")`` is of that mapping."""

    def make(name="softmax", **changes):
        mapping, *parameters = name.split("-")
        title = ", ".join([mapping, *(p.replace("lambda", "lambda ") for p in parameters)])
        return replace(RECORD, **{"name": name, "mapping": mapping, "attention": title, **changes})

    return make
