"""Time of our ROUGE-1, -2 and -L against that of the package rouge-score, from texts to scores.

python scripts/benchmark/rouge.py [--pairs FILE.tsv] [--count 10000] [--rounds 3] [--json FILE]

Each table is without or with stemming, and of scores alone or with the 95 % confidence intervals
of 1,000 samples. Pairs are a hypothesis and a reference a line, with a tab between; without a
file they are the quick start's English verses, in which two words of five are of the next verse.
The stems that ours remembers are forgotten before each call. Needs `pip install '.[bench]'`.
Ten minutes, most of them rouge-score's; `--count 1000` takes one.
"""

import argparse
import gzip
import random
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Dict, List, Tuple

from rouge_score.rouge_scorer import RougeScorer
from rouge_score.scoring import BootstrapAggregator
from timing import options, paired, positive, report

import fairseq_regattn
from fairseq_regattn.scoring.rouge import Rouge
from fairseq_regattn.scoring.rouge.stemmer import stem

Pairs = List[Tuple[str, str]]

VERSES = Path(fairseq_regattn.__file__).parent / "data" / "verses.en-es.tsv.gz"


def made_up(count: int) -> Pairs:
    """Pairs that share three words of five; after the last verse comes the first."""
    with gzip.open(VERSES, "rt", encoding="utf-8") as file:
        verses = [line.split("\t")[2] for line in file]
    generator = random.Random(1)
    pairs = []
    for i in range(count):
        reference, other = (verses[n % len(verses)] for n in (i, i + 1))
        others = other.split()
        words = [
            generator.choice(others) if generator.random() < 0.4 else word
            for word in reference.split()
        ]
        pairs.append((" ".join(words), reference))
    return pairs


def read_pairs(text: str) -> Pairs:
    """A command line's file of pairs."""
    try:
        lines = Path(text).read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise argparse.ArgumentTypeError(f"cannot read {text!r}: {reason}") from None
    pairs = []
    for number, line in enumerate(lines, 1):
        hypothesis, tab, reference = line.partition("\t")
        if not tab or "\t" in reference:
            raise argparse.ArgumentTypeError(
                f"line {number} of {text!r} must be a hypothesis and a reference with a tab between"
            )
        pairs.append((hypothesis, reference))
    return pairs


def ours(pairs: Pairs, stemmed: bool, intervals: bool) -> Dict[str, Any]:
    stem.cache_clear()
    hypotheses, references = [made for made, _ in pairs], [[there] for _, there in pairs]
    system = Rouge(("1", "2", "L"), stem=stemmed).system(hypotheses, references)
    return system.averages() if intervals else system.means()


def theirs(pairs: Pairs, stemmed: bool, intervals: bool) -> Dict[str, Any]:
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=stemmed)
    scores = [scorer.score(reference, hypothesis) for hypothesis, reference in pairs]
    if not intervals:
        return {
            name: sum(score[name].fmeasure for score in scores) / len(scores) for name in scores[0]
        }
    aggregator = BootstrapAggregator()
    for score in scores:
        aggregator.add_scores(score)
    return aggregator.aggregate()


def main() -> None:
    parser = options(__doc__.splitlines()[0], rounds=3)
    parser.add_argument("--pairs", type=read_pairs, metavar="FILE", help="a tab-separated file")
    parser.add_argument("--count", type=positive, default=10_000, help="pairs")
    args = parser.parse_args()
    pairs = args.pairs[: args.count] if args.pairs else made_up(args.count)
    for stemmed, intervals in product([False, True], [False, True]):
        seconds = paired(
            {
                "ours": partial(ours, pairs, stemmed, intervals),
                "rouge-score": partial(theirs, pairs, stemmed, intervals),
            },
            args.rounds,
        )
        what = "scores and intervals" if intervals else "scores"
        how = "with" if stemmed else "without"
        report(f"{what} of {len(pairs)} pairs, {how} stemming", seconds, "rouge-score", args.json)


if __name__ == "__main__":
    main()
