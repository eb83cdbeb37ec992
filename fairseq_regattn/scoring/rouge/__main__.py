"""``python -m fairseq_regattn.scoring.rouge``: ROUGE of files, as ROUGE-1.5.5 would print it."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairseq_regattn.analysis.tables import text_rows
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.options import Parser
from fairseq_regattn.recipes.stages import rewrite
from fairseq_regattn.scoring.rouge.files import Corpus, read_duc, read_generated, read_texts
from fairseq_regattn.scoring.rouge.score import MEASURES, SEVERAL, Average, Rouge
from fairseq_regattn.scoring.rouge.text import Limit, read_text

PRINTED = {
    "rouge155": "averages of ROUGE-1.5.5, which are means of samples; plain means are in --json",
    "means": "plain means, as fairseq-generate --scoring rouge; those of ROUGE-1.5.5 are in --json",
}
HEADER = ("ROUGE", "recall", "precision", "F1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the scores; 2 where there can be none, and then nothing is written."""
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    _check(options, parser)
    try:
        types = options.types or ("1", "2", "L" if options.duc is None else "Lsum")
        rouge = Rouge(types, options.stem, options.limit, options.several)
        # fairseq's scorer is not told the order that the averages of ROUGE-1.5.5 depend on
        printed = "rouge155" if options.generate is None else "means"
        result = score(rouge, _read(options), options.compare, printed)
        packed = json.dumps(result, indent=2, ensure_ascii=False)
        if options.json == "-":
            print(packed)
            return 0
        if options.json:  # first: the reader of the print may leave before its end
            rewrite(Path(options.json), f"{packed}\n".encode())
        print(report(result))
    except (UsageError, OSError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def score(
    rouge: Rouge, corpus: Corpus, baseline: str | None = None, printed: str = "rouge155"
) -> dict[str, Any]:
    """What the command writes as JSON: scores from 0 to 1 with five decimals.

    Args:
        rouge: what is computed.
        corpus: of what.
        baseline: the system that all others are compared with.
        printed: which of the two kinds of averages is for the table.

    Raises:
        UsageError: as for :meth:`Rouge.system`; the baseline is not there, or nothing else is.
    """
    if baseline is not None and baseline not in corpus.systems:
        raise UsageError(f"there is no {baseline} to compare with")
    if corpus.systems.keys() == {baseline}:
        raise UsageError(f"{baseline} cannot be compared with itself")
    systems = {
        name: rouge.system(texts, corpus.references, corpus.names)
        for name, texts in corpus.systems.items()
    }
    found: dict[str, Any] = {}
    for name, system in systems.items():
        texts = corpus.systems[name]
        found[name] = {
            "empty": sum(not text.strip() for text in texts),
            "without_tokens": _without_tokens(texts, rouge),
            "means": _as_json(system.summary()),
            "rouge155": _as_json(system.averages()),
        }
        if baseline is not None and name != baseline:
            by_measure = {m: system.p_values(systems[baseline], m) for m in MEASURES}
            found[name]["p"] = {
                kind: {measure: by_measure[measure][kind] for measure in MEASURES}
                for kind in rouge.types
            }
    return {
        "signature": next(iter(systems.values())).signature,
        "documents": len(corpus.references),
        "references_without_tokens": sum(
            _without_tokens(texts, rouge) for texts in corpus.references
        ),
        "compared_with": baseline,
        "printed": printed,
        "systems": found,
    }


def _as_json(averages: Mapping[str, Average]) -> dict[str, Any]:
    return {
        kind: {measure: interval._asdict() for measure, interval in average._asdict().items()}
        for kind, average in averages.items()
    }


def report(result: dict[str, Any]) -> str:
    """What the command prints of :func:`score`: tables in percent, for a terminal."""
    systems = result["systems"]
    parts = [text_rows([("system", *HEADER), *_rows(systems, result["printed"], _percent)])]
    if result["compared_with"] is not None:
        rows = [(f"p against {result['compared_with']}", *HEADER)]
        parts.append(text_rows([*rows, *_rows(systems, "p", "{:.4f}".format)]))
    silent = [
        f"{system['without_tokens']} of {name} ({system['empty']} empty)"
        for name, system in systems.items()
        if system["without_tokens"]
    ]
    parts.append(
        f"percent, with 95 % intervals; {result['documents']:,} documents\n"
        f"{PRINTED[result['printed']]}\n"
        f"hypotheses without tokens, which score 0: {', '.join(silent) or 'none'}\n"
        f"references without tokens: {result['references_without_tokens'] or 'none'}\n"
        f"{result['signature']}"
    )
    return "\n\n".join(parts)


def _rows(
    systems: dict[str, Any], what: str, told: Callable[[Any], str]
) -> Iterator[tuple[str, ...]]:
    for name, system in systems.items():
        for kind, numbers in system.get(what, {}).items():
            yield (name, kind, *(told(numbers[measure]) for measure in MEASURES))


def _percent(interval: dict[str, float]) -> str:
    value, low, high = (f"{100 * interval[key]:.2f}" for key in ("value", "low", "high"))
    return f"{value} ({low}-{high})"


def _without_tokens(texts: Sequence[str], rouge: Rouge) -> int:
    return sum(not read_text(text, False, rouge.limit).tokens for text in texts)


def _read(options: argparse.Namespace) -> Corpus:
    other = [options.compare] if options.compare is not None else []
    if options.generate is not None:
        return read_generated([options.generate, *other])
    if options.duc is not None:
        peers, models = options.duc
        # without --peer all are read, the other among them
        return read_duc(peers, models, (*options.peer, *other) if options.peer else ())
    hypotheses, *references = options.files
    return read_texts([hypotheses, *other], references)


def _check(options: argparse.Namespace, parser: Parser) -> None:
    ways = bool(options.files), options.generate is not None, options.duc is not None
    if sum(ways) != 1 or len(options.files) == 1:
        parser.error("give either HYPOTHESES and REFERENCES, or --generate, or --duc")
    if options.peer and options.duc is None:
        parser.error("--peer is for --duc")


class _Once(argparse.Action):
    """Argparse would take the last of several."""

    given = False

    def __call__(self, parser, namespace, values, option_string=None):
        if self.given:
            raise argparse.ArgumentError(self, "given twice")
        self.given = True
        setattr(namespace, self.dest, values)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m fairseq_regattn.scoring.rouge",
        usage="%(prog)s [options] HYPOTHESES REFERENCES [REFERENCES ...]\n"
        "       %(prog)s [options] --generate FILE\n"
        "       %(prog)s [options] --duc PEERS MODELS [--peer ID[,ID...]]",
        description="Recall, precision and F1 with 95 % confidence intervals, as ROUGE-1.5.5 "
        "prints them. Tokens are runs of ASCII letters and digits in lower case; a text that has "
        "none is counted, and scores 0.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="HYPOTHESES REFERENCES",
        help="a line a document, UTF-8, .gz or not; several files of references where documents "
        "have several",
    )
    parser.add_argument(
        "--generate",
        action=_Once,
        metavar="FILE",
        help="output of fairseq-generate: D- lines (H- where there are none) against T- lines",
    )
    parser.add_argument(
        "--duc",
        nargs=2,
        action=_Once,
        metavar=("PEERS", "MODELS"),
        help="folders of DUC 2003 and 2004: a file a summary, a sentence a line (or SEE's HTML), "
        "named DOCSET.TYPE.SIZE.ASSESSOR.AUTHOR.DOCUMENT; models are those of the same name but "
        "for the author. A peer that lacks a document is an error",
    )
    parser.add_argument(
        "--peer",
        type=_comma_separated,
        action=_Once,
        metavar="ID",
        help="authors in PEERS to be scored, 1,17 (default: all)",
    )
    parser.add_argument(
        "--compare",
        action=_Once,
        metavar="OTHER",
        help="also score another system, and test the differences to it (paired approximate "
        "randomisation): a file like HYPOTHESES, one like that of --generate, or an ID in PEERS",
    )
    parser.add_argument(
        "--types",
        type=_comma_separated,
        action=_Once,
        metavar="TYPE,...",
        help="1 to 9 (n-grams), L (longest common subsequence of whole documents), Lsum (by "
        "sentences, which ROUGE-1.5.5 calls ROUGE-L: the same as L but for --duc, where lines are "
        "sentences), W-1.2 (weighted); default: 1,2,L, with --duc 1,2,Lsum",
    )
    parser.add_argument(
        "--stem", action="store_true", help="as ROUGE-1.5.5 with -m (default: no stemming)"
    )
    limit = parser.add_mutually_exclusive_group()
    for unit in ("bytes", "words"):
        limit.add_argument(
            f"--{unit}",
            dest="limit",
            type=partial(_limit, unit),
            action=_Once,
            metavar="N",
            help=f"only the first N {unit} of each text, as -{unit[0] if unit == 'bytes' else 'l'}",
        )
    parser.add_argument(
        "--several",
        choices=SEVERAL,
        default="average",
        action=_Once,
        help="of several references: the average (default), the best, or the mean of the best of "
        "all choices without one of them",
    )
    parser.add_argument(
        "--json",
        type=_json_file,
        action=_Once,
        metavar="FILE.json",
        help="also write all numbers there, from 0 to 1 with five decimals; -: print them instead",
    )
    return parser


def _comma_separated(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _limit(unit: str, text: str) -> Limit:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return Limit(unit, int(text))


def _json_file(text: str) -> str:
    """What is forgotten after --json must not cost the user the file that comes next."""
    if text != "-" and not text.endswith(".json"):
        raise argparse.ArgumentTypeError(f"must end in .json, or be -, got {text!r}")
    return text


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end without a word where `| head` has enough
    sys.exit(main())
