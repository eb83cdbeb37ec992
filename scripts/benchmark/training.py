"""Training speed of each mapping against softmax, and against fairseq's own lstm.

One update of Adam on one random batch, model sizes as given, everything in one process.

python scripts/benchmark/training.py [--arch regattn_lstm_small] [--rounds 9] [--json FILE]
"""

import argparse
from argparse import Namespace
from types import SimpleNamespace

import fairseq  # noqa: F401  (before the models: importing it registers ours)
import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from timing import paired, report

import fairseq_regattn  # noqa: F401
from fairseq_regattn.attention import ATTENTIONS


def build(arch: str, task, **options):
    config = Namespace(arch=arch, criterion="cross_entropy", **options)
    ARCH_CONFIG_REGISTRY[arch](config)
    return ARCH_MODEL_REGISTRY[arch].build_model(config, task)


def fairseq_lstm(model, task):
    """fairseq's lstm in the sizes of one of ours."""
    encoder, decoder = model.encoder, model.decoder
    return build(
        "lstm",
        task,
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
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="regattn_lstm_small")
    parser.add_argument("--vocabulary", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=60)
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", help="append the figures to this file")
    args = parser.parse_args()

    dictionary = Dictionary()
    for number in range(args.vocabulary):
        dictionary.add_symbol(str(number))
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    torch.manual_seed(1)
    size = (args.batch, args.length)
    source, shifted, target = (torch.randint(4, args.vocabulary, size) for _ in range(3))
    lengths = torch.linspace(args.length, args.length // 2, args.batch).long()
    places = torch.arange(args.length)
    source[places < args.length - lengths.unsqueeze(1)] = dictionary.pad()

    def update(model):
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)

        def run() -> None:
            logits = model(source, lengths, shifted)[0]
            loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return run

    models = {name: build(args.arch, task, attention=name) for name in ATTENTIONS}
    models["fairseq lstm"] = fairseq_lstm(models["softmax"], task)
    seconds = paired({name: update(model) for name, model in models.items()}, args.rounds)
    report(
        f"one update, {args.arch}, {args.batch} x {args.length} tokens,"
        f" vocabulary {args.vocabulary}",
        seconds,
        "softmax",
        args.json,
    )
    tokens = args.batch * args.length
    for name, values in seconds.items():
        print(f"{name:>20} {tokens / sorted(values)[len(values) // 2]:8.0f} tokens/s")


if __name__ == "__main__":
    main()
