"""fairseq's commands called in this process, as fairseq's own tests call them."""

import io
import re
import sys
from pathlib import Path
from unittest import mock

import torch
from fairseq import checkpoint_utils, options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate as fairseq_generate
from fairseq_cli import interactive as fairseq_interactive
from fairseq_cli import preprocess as fairseq_preprocess
from fairseq_cli import train as fairseq_train

import fairseq_regattn  # noqa: F401  as --user-dir would

WORDS = 24
TINY = """--arch regattn_lstm --encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-bidirectional
    --dropout 0.1 --optimizer adam --lr 0.01 --clip-norm 1 --cpu --num-workers 0 --seed 7
    --batch-size 16 --no-progress-bar --log-format none --no-epoch-checkpoints
    --required-batch-size-multiple 1 --disable-validation"""


def write_corpus(folder):
    """Two languages of the same sentences, one the other turned round, 1 to 13 words each."""
    generator = torch.Generator().manual_seed(3)
    folder.mkdir()
    for split, size in (("train", 160), ("valid", 16), ("test", 64)):
        with open(folder / f"{split}.xx", "w") as xx, open(folder / f"{split}.yy", "w") as yy:
            for number in range(size):
                length = 1 + number % 13
                words = torch.randint(WORDS, (length,), generator=generator).tolist()
                print(*(f"x{word}" for word in words), file=xx)
                print(*(f"y{word}" for word in words[::-1]), file=yy)
    return folder


def preprocess(text, out, *flags):
    """``fairseq-preprocess`` of all three splits."""
    parser = options.get_preprocessing_parser()
    prefixes = [f"--{split}pref={text / split}" for split in ("train", "valid", "test")]
    arguments = ["--source-lang=xx", "--target-lang=yy", f"--destdir={out}", "--workers=1"]
    fairseq_preprocess.main(parser.parse_args([*arguments, *prefixes, *flags]))
    return out


def train(data, out, *flags, base=TINY, bf16=False):
    """``fairseq-train`` of a tiny model; later flags win."""
    arguments = [str(data), *base.split(), f"--save-dir={out}", *map(str, flags)]
    parser = options.get_training_parser()
    args = options.parse_args_and_arch(parser, arguments)
    # else the forks fill batches otherwise after a restart, for any model
    args.update_epoch_batch_itr = True
    args.bf16 = bf16  # the flag would ask for a TPU too
    # fairseq keeps the best score on the function, for the life of a process
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    fairseq_train.main(convert_namespace_to_omegaconf(args))
    return Path(out)


def state(checkpoint):
    """What is in a checkpoint."""
    return torch.load(checkpoint, weights_only=False)


def enlarge(checkpoint):
    """Give a model large weights: what it writes of one source is unlike that of another."""
    saved = state(checkpoint)
    generator = torch.Generator().manual_seed(5)
    for key, value in saved["model"].items():
        if value.is_floating_point():
            bound = 3.0 if "attention" in key else 0.8
            value.uniform_(-bound, bound, generator=generator)
    bias = saved["model"]["decoder.output_layer_module.bias"]
    bias[[0, 3]] = -30  # no <s>, which is not printed, and no <unk>
    bias[2] = 2  # sentences end at many lengths
    torch.save(saved, checkpoint)


def generate(data, checkpoint, out, *flags, left_pad=True):
    """``fairseq-generate``; its output, and the scorer it returns."""
    parser = options.get_generation_parser()
    arguments = [str(data), f"--path={checkpoint}", f"--results-path={out}", "--cpu"]
    arguments += [
        "--num-workers=0",
        "--no-progress-bar",
        "--beam=3",
        "--min-len=5",
        "--max-len-b=12",
        *flags,
    ]
    # fairseq drops a last batch that is not a multiple (its issue 5036)
    arguments.append("--required-batch-size-multiple=1")
    args = options.parse_args_and_arch(parser, arguments)
    args.left_pad_source = left_pad  # the flag takes a value in some versions, in others none
    scorer = fairseq_generate.main(args)
    return (Path(out) / "generate-test.txt").read_text(), scorer


def interactive(data, checkpoint, text, capsys, *flags):
    """``fairseq-interactive`` with `text` on its standard input; what it prints."""
    parser = options.get_interactive_generation_parser()
    arguments = [str(data), f"--path={checkpoint}", "--cpu", "--beam=3", "--min-len=5"]
    arguments += ["--max-len-b=12", *flags]
    args = options.parse_args_and_arch(parser, arguments)
    capsys.readouterr()
    with mock.patch.object(sys, "stdin", io.StringIO(text)):
        fairseq_interactive.main(convert_namespace_to_omegaconf(args))
    return capsys.readouterr().out


def lines(output, kind):
    """Sentence number -> the last field of its lines of one kind, "H" or "A" for example."""
    return {
        int(number): rest.split("\t")[-1]
        for number, rest in re.findall(rf"^{kind}-(\d+)\t(.*)$", output, re.MULTILINE)
    }
