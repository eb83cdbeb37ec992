"""``--scoring rouge`` without a model: what it prints of the strings that fairseq gives it."""

import random

import numpy as np
import pytest
from fairseq import options, scoring
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_regattn  # noqa: F401  as --user-dir would
from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.rouge import Limit, Rouge
from fairseq_regattn.scoring.scorer import RougeConfig
from fairseq_regattn.tasks.summarization import SummarizationConfig

PAIRS = [
    ("police kill the gunman", "police killed the gunman"),
    ("the gunman was killed", "the police killed the gunman at the end of the day"),
    ("", "a reference of which nothing is found"),
    ("a man", "a man walks his dog"),
    ("dogs are walking", "the dog walks"),
    ("one two three four five six", "one three five seven nine"),
]


def build(*flags):
    """The scorer that ``fairseq-generate`` would have with these flags."""
    parser = options.get_generation_parser()
    arguments = ["data", "--path=x", "--scoring=rouge", *flags]
    args = options.parse_args_and_arch(parser, arguments)
    return scoring.build_scorer(convert_namespace_to_omegaconf(args).scoring, Dictionary())


def filled(scorer, pairs):
    for hypothesis, reference in pairs:
        scorer.add_string(reference, hypothesis)
    return scorer


FLAGS = {
    "": Rouge(),
    "--rouge-types 1": Rouge(("1",)),
    "--rouge-types L,2,Lsum,W-1.2": Rouge(("L", "2", "Lsum", "W-1.2")),
    "--rouge-stem": Rouge(stem=True),
    "--rouge-bytes 20": Rouge(limit=Limit("bytes", 20)),
    "--rouge-words 3 --rouge-stem": Rouge(stem=True, limit=Limit("words", 3)),
    "--task summarization --rouge-words 3": Rouge(limit=Limit("words", 3)),
}


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_are_what_they_are_called_in_python(flags):
    rouge = FLAGS[flags]
    scorer = filled(build(*flags.split()), PAIRS)
    assert scorer.rouge == rouge
    hypotheses, references = zip(*PAIRS)
    system = rouge.system(hypotheses, [[reference] for reference in references])
    assert scorer.result_string().splitlines() == ["", *system.lines()]
    assert len(system.lines()) == len(rouge.types) + 1
    last = np.mean([document[rouge.types[-1]].f1 for document in system.documents])
    assert scorer.score() == pytest.approx(100 * last)


def test_defaults_by_name():
    """As in Python, or in a YAML file with ``scoring: rouge``."""
    assert scoring.build_scorer("rouge", Dictionary()).rouge == Rouge()


def test_means_with_the_intervals_around_them():
    """By hand: three sentences with F1 1, 0 and 0.5; the empty one counts."""
    pairs = [("a b", "a b"), ("", "c"), ("e x y", "e"), ("f f", "f f")]
    scorer = filled(build("--rouge-types=1"), pairs)
    expected = "ROUGE-1  R 75.00 (25.00-100.00)  P 58.33 (16.67-100.00)  F1 62.50 (25.00-100.00)"
    assert scorer.result_string().splitlines()[1] == expected
    assert scorer.score() == 62.5


def test_the_order_of_sentences_changes_nothing():
    """fairseq sorts by length, and so by batch size; perl's sampling would tell."""
    rng = random.Random(2)
    words = "abcdefghij"
    pairs = [
        (" ".join(rng.choices(words, k=rng.randint(0, 9))), " ".join(rng.choices(words, k=8)))
        for _ in range(101)
    ]
    known = filled(build(), pairs)
    ordinary = set()
    for _ in range(5):
        rng.shuffle(pairs)
        shuffled = filled(build(), pairs)
        assert shuffled.result_string() == known.result_string()
        assert shuffled.system().summary() == known.system().summary()
        assert shuffled.score() == known.score()
        ordinary.add(str(shuffled.system().averages()))
    assert len(ordinary) > 1
    alone = filled(build("--rouge-types=L"), pairs).system()
    assert alone.summary()["L"] == known.system().summary()["L"]


def test_intervals_are_close_to_those_of_perl():
    rng = np.random.default_rng(3)
    words = np.array(list("abcdefghij"))
    pairs = [(" ".join(rng.choice(words, 6)), " ".join(rng.choice(words, 8))) for _ in range(200)]
    system = filled(build(), pairs).system()
    perls = system.averages()
    for name, average in system.summary().items():
        for ours, theirs in zip(average, perls[name]):
            assert ours == pytest.approx(theirs, abs=0.01)
            assert ours.low < ours.value < ours.high


def test_unknown_words_do_not_match():
    """As fairseq writes them: one way in references, another in hypotheses."""
    unk = Dictionary()
    pair = (f"a {unk.unk_string()}", f"a {unk.unk_string(True)}")
    assert filled(build("--rouge-types=1"), [pair]).score() == 50


WRONG = {
    "--rouge-types 1,LL": ("--rouge-types", "'1,LL'"),
    "--rouge-types 1,1": ("--rouge-types", "'1,1'"),
    "--rouge-types=": ("--rouge-types", "''"),
    "--rouge-types W-1": ("--rouge-types", "'W-1'"),
    "--rouge-bytes 0": ("--rouge-bytes", "0"),
    "--rouge-words -3": ("--rouge-words", "-3"),
    "--rouge-bytes 75 --rouge-words 10": ("--rouge-bytes 75", "--rouge-words 10"),
}


@pytest.mark.parametrize("flags", WRONG)
def test_wrong_values(flags):
    with pytest.raises(UsageError) as error:
        build(*flags.split())
    assert all(part in str(error.value) for part in WRONG[flags])
    assert "\n" not in str(error.value)


def test_nothing_to_score():
    with pytest.raises(UsageError, match="no hypotheses"):
        build().result_string()


@pytest.mark.parametrize("flags", ["--scoring=rouge", "--task=summarization"])
def test_no_flag_is_one_that_fairseq_has(flags):
    """argparse would drop the second without a word."""

    def known(*arguments):
        parser = options.get_training_parser()
        arguments = ["data", "--arch=regattn_lstm", *arguments]
        options.parse_args_and_arch(parser, arguments, parse_known=True)
        return {flag for action in parser._actions for flag in action.option_strings}

    fields = RougeConfig if flags == "--scoring=rouge" else SummarizationConfig
    names = [name for name in fields.__dataclass_fields__ if "rouge" in name]
    assert known(flags) - known() == {f"--{name.replace('_', '-')}" for name in names}
