"""Models to compare, one with each mapping and fairseq's own lstm, and what they work on."""

import argparse
import statistics
from argparse import Namespace
from typing import Any, Callable, Dict, Tuple

import fairseq  # noqa: F401  (before the models: importing it registers ours)
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, build_model
from timing import options, paired, positive, ratios, report, report_targets

import fairseq_regattn  # noqa: F401
from fairseq_regattn.attention import ATTENTIONS

FAIRSEQ = "fairseq lstm"


def model_options(description: str, **defaults: Any) -> argparse.Namespace:
    """The command line that the benchmarks of models share."""
    parser = options(description, rounds=9, **defaults)
    ours = sorted(name for name in ARCH_CONFIG_REGISTRY if name.startswith("regattn_lstm"))
    parser.add_argument("--arch", choices=ours, default="regattn_lstm_opennmt", help="sizes")
    parser.add_argument("--vocabulary", type=positive, default=3000, help="words")
    parser.add_argument("--batch", type=positive, help="sentences")
    parser.add_argument(
        "--length", type=positive, default=25, help="tokens of the longest sentence"
    )
    return parser.parse_args()


def make_task(args: argparse.Namespace) -> Namespace:
    """As much of a fairseq task as models ask for: one dictionary for both sides."""
    dictionary = Dictionary()
    for number in range(args.vocabulary):
        dictionary.add_symbol(str(number))
    return Namespace(source_dictionary=dictionary, target_dictionary=dictionary)


def models(args: argparse.Namespace, task: Namespace) -> Dict[str, Any]:
    """``--arch`` with each mapping, and fairseq's lstm in the same sizes; random weights."""
    torch.manual_seed(1)
    made = {
        name: build_model(Namespace(arch=args.arch, attention=name), task) for name in ATTENTIONS
    }
    encoder, decoder = made["softmax"].encoder, made["softmax"].decoder
    lstm = Namespace(
        arch="lstm",
        dropout=decoder.dropout_module.p,
        encoder_dropout_in=encoder.dropout_in_module.p,
        encoder_dropout_out=encoder.dropout_out_module.p,
        decoder_dropout_in=decoder.dropout_in_module.p,
        decoder_dropout_out=decoder.dropout_out_module.p,
        encoder_embed_dim=encoder.embed_tokens.embedding_dim,
        encoder_hidden_size=encoder.hidden_size,
        encoder_layers=encoder.num_layers,
        encoder_bidirectional=encoder.bidirectional,
        decoder_embed_dim=decoder.embed_dim,
        decoder_hidden_size=decoder.hidden_size,
        decoder_layers=len(decoder.layers),
        decoder_out_embed_dim=decoder.hidden_size,
        criterion="cross_entropy",
    )
    ARCH_CONFIG_REGISTRY["lstm"](lstm)
    made[FAIRSEQ] = build_model(lstm, task)
    return made


def sources(args: argparse.Namespace, dictionary: Dictionary) -> Dict[str, torch.Tensor]:
    """Random sentences, padded on the left, the shortest half as long as the longest."""
    tokens = torch.randint(dictionary.nspecial, len(dictionary), (args.batch, args.length))
    lengths = torch.linspace(args.length, args.length // 2, args.batch).long()
    padding = args.length - lengths.unsqueeze(1)
    tokens[torch.arange(args.length) < padding] = dictionary.pad()
    return {"src_tokens": tokens, "src_lengths": lengths}


def compare(
    title: str,
    contestants: Dict[str, Callable[[], Any]],
    speed: Tuple[int, str],
    target: float,
    args: argparse.Namespace,
) -> None:
    """Run them round by round; print times, and speeds against fairseq's lstm in each round.

    Args:
        speed: what one call does, and in what unit: ``(1600, "tokens/s")``.
        target: how many times as fast as fairseq's lstm softmax is to be.
    """
    amount, unit = speed
    seconds = paired(contestants, args.rounds)
    report(f"{title}, {args.arch}", seconds, "softmax", args.json)
    print(f"\n{'':>20} {unit:>12} {'x ' + FAIRSEQ:>16} {'range':>15}")
    for name, values in seconds.items():
        faster = ratios(seconds, FAIRSEQ, name)
        print(
            f"{name:>20} {amount / statistics.median(values):12.1f}"
            f" {statistics.median(faster):16.2f} {f'{min(faster):.2f}-{max(faster):.2f}':>15}"
        )
    against = statistics.median(ratios(seconds, FAIRSEQ, "softmax"))
    report_targets([(f"speed, softmax x {FAIRSEQ}", against, ">=", target)], args.json)
