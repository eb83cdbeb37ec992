"""A dictionary, small models whose attention differs from uniform, and padded batches."""

from argparse import Namespace

import torch
from fairseq import models
from fairseq.data import Dictionary

import fairseq_regattn.models  # noqa: F401  registers
from fairseq_regattn.attention import ATTENTIONS, CONTINUOUS

MAPPINGS = [*sorted(ATTENTIONS), *CONTINUOUS]
SMALL = {"encoder_embed_dim": 6, "encoder_hidden_size": 5, "decoder_embed_dim": 7}
SMALL.update(decoder_hidden_size=8, decoder_out_embed_dim=9)
PAD, EOS = 1, 2


def dictionary(words=20):
    """``words`` words after the four special symbols."""
    made = Dictionary()
    for number in range(words):
        made.add_symbol(f"w{number}", n=words - number)
    return made


def task(source=None, target=None):
    """As much of a fairseq task as a model asks for."""
    source = source or dictionary()
    return Namespace(source_dictionary=source, target_dictionary=target or dictionary(17))


def build(attention="softmax", *, seed=1, arch="regattn_lstm", within=None, sharp=True, **flags):
    """A model in double precision and eval mode, as the flags of ``fairseq-train`` make it.

    With `sharp` its weights are scaled up, lest attention be uniform and hide what is wrong.
    """
    torch.manual_seed(seed)
    given = {**SMALL, **flags} if arch == "regattn_lstm" else flags
    args = Namespace(arch=arch, attention=attention, **given)
    model = models.build_model(args, within or task()).double().eval()
    if sharp:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(8)
            for parameter in model.decoder.attention.parameters():
                parameter.mul_(4)
    return model


def sentences(lengths, words=20, seed=0):
    """Random sentences of so many words, and the end of sentence."""
    generator = torch.Generator().manual_seed(seed)
    draw = [torch.randint(4, 4 + words, (n,), generator=generator) for n in lengths]
    return [torch.cat([words, torch.tensor([EOS])]) for words in draw]


def pad(rows, side="left", extra=0):
    """Sentences as ``bsz x longest + extra`` tokens, and their lengths."""
    width = max(map(len, rows)) + extra
    tokens = torch.full((len(rows), width), PAD)
    for row, sentence in zip(tokens, rows):
        row[slice(width - len(sentence), None) if side == "left" else slice(len(sentence))] = (
            sentence
        )
    return tokens, torch.tensor([len(sentence) for sentence in rows])


def shifted(rows):
    """Targets as the decoder reads them: the end of sentence first, padded on the right."""
    return pad([torch.cat([row[-1:], row[:-1]]) for row in rows], "right")[0]
