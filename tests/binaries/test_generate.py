"""``fairseq-generate`` and ``fairseq-interactive``: alignments above all."""

import functools

import pytest
import sacrebleu
import torch

from fairseq_regattn.attention import ATTENTIONS, CONTINUOUS

from . import commands

FAST = {"softmax", "fusedmax"}  # of tests that repeat another one's work
SOME = [
    pytest.param(name, marks=[] if name in FAST else pytest.mark.slow)
    for name in [*sorted(ATTENTIONS), *CONTINUOUS]
]


@pytest.fixture(scope="module")
def generate(data, trained, tmp_path_factory):
    """``generate(name, *flags)``: output of a trained model on the test split, made once."""

    @functools.cache
    def run(name, *flags, **options):
        out = tmp_path_factory.mktemp("out")
        return commands.generate(data, trained(name), out, *flags, **options)

    return run


def soft(line):
    """One row a target token, the end of sentence included, over the source tokens."""
    return torch.tensor([[float(w) for w in row.split(",")] for row in line.split(" ")])


def same_translations(alone, together):
    assert commands.lines(alone, "S") == commands.lines(together, "S")
    assert commands.lines(alone, "H") == commands.lines(together, "H")
    assert len(commands.lines(alone, "H")) == 64


@pytest.mark.parametrize("left_pad", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("name", SOME)
def test_hard_alignment_alone_and_in_a_batch_of_64(generate, name, left_pad):
    alone, _ = generate(name, "--batch-size=1", "--print-alignment=hard")
    together, _ = generate(name, "--batch-size=64", "--print-alignment=hard", left_pad=left_pad)
    same_translations(alone, together)
    aligned = commands.lines(alone, "A")
    assert aligned == commands.lines(together, "A")
    sources, targets = commands.lines(alone, "S"), commands.lines(alone, "H")
    seen = set()
    for number, line in aligned.items():
        pairs = [tuple(map(int, pair.split("-"))) for pair in line.split()]
        assert [target for _, target in pairs] == list(range(len(targets[number].split())))
        assert all(0 <= source < len(sources[number].split()) for source, _ in pairs)
        seen.update(source for source, _ in pairs)
    assert len(seen) > 5  # they say something


@pytest.mark.parametrize("left_pad", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("name", SOME)
def test_soft_alignment_alone_and_in_a_batch_of_64(generate, name, left_pad):
    alone, _ = generate(name, "--batch-size=1", "--print-alignment=soft")
    together, _ = generate(name, "--batch-size=64", "--print-alignment=soft", left_pad=left_pad)
    same_translations(alone, together)
    sources, targets = commands.lines(alone, "S"), commands.lines(alone, "H")
    batched = commands.lines(together, "A")
    for number, line in commands.lines(alone, "A").items():
        weights = soft(line)
        size = (len(targets[number].split()) + 1, len(sources[number].split()) + 1)
        assert weights.shape == size
        torch.testing.assert_close(weights, soft(batched[number]), atol=1e-4, rtol=0)
        torch.testing.assert_close(weights.sum(-1), torch.ones(size[0]), atol=1e-5, rtol=0)


def test_sacrebleu(generate):
    output, scorer = generate("softmax", "--scoring=sacrebleu", "--batch-size=64")
    references = commands.lines(output, "T")
    translations = commands.lines(output, "D")
    expected = sacrebleu.corpus_bleu(
        [translations[n] for n in references], [list(references.values())]
    )
    assert scorer.score() == pytest.approx(expected.score)
    assert f"BLEU = {expected.score:.2f}" in output.splitlines()[-1]


def test_without_alignment_nothing_changes(generate):
    plain, _ = generate("fusedmax", "--batch-size=64")
    aligned, _ = generate("fusedmax", "--batch-size=64", "--print-alignment=hard")
    same_translations(plain, aligned)
    assert commands.lines(plain, "A") == {}


def test_ensemble_averages_attention(data, trained, tmp_path):
    """Two models of different mappings; the weights are the mean of both."""
    both = f"{trained('softmax')}:{trained('fusedmax')}"
    flags = ("--print-alignment=soft", "--batch-size=64")
    output, _ = commands.generate(data, both, tmp_path, *flags)
    for line in commands.lines(output, "A").values():
        weights = soft(line)
        torch.testing.assert_close(weights.sum(-1), torch.ones(len(weights)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("flag", ["--fp16", "--max-tokens=400"])
def test_other_ways_to_batch(generate, flag):
    output, _ = generate("fusedmax", "--print-alignment=hard", flag)
    assert len(commands.lines(output, "A")) == 64


def test_interactive(data, trained, generate, capsys):
    """Sentences from standard input, ten at a time, translated and aligned as generate does."""
    expected, _ = generate("fusedmax", "--batch-size=64", "--print-alignment=hard")
    sources = commands.lines(expected, "S")
    text = "".join(f"{sources[number]}\n" for number in range(20))
    flags = ("--buffer-size=10", "--batch-size=10", "--print-alignment=hard")
    output = commands.interactive(data, trained("fusedmax"), text, capsys, *flags)
    for kind in "SHA":
        wanted = {n: line for n, line in commands.lines(expected, kind).items() if n < 20}
        assert commands.lines(output, kind) == wanted
    single = commands.interactive(data, trained("fusedmax"), text, capsys, flags[-1])
    assert commands.lines(single, "A") == commands.lines(output, "A")


@pytest.mark.parametrize("name", ["softmax", "oscarmax"])
def test_attention_while_making_the_reference(generate, name):
    """Alone, and in a batch with padding on either side."""
    forced = ("--score-reference", "--print-alignment=soft")
    alone, _ = generate(name, "--batch-size=1", *forced)
    sources, references = commands.lines(alone, "S"), commands.lines(alone, "T")
    assert commands.lines(alone, "H") == references
    expected = {number: soft(line) for number, line in commands.lines(alone, "A").items()}
    assert len(expected) == 64
    for number, weights in expected.items():
        size = (len(references[number].split()) + 1, len(sources[number].split()) + 1)
        assert weights.shape == size
        torch.testing.assert_close(weights.sum(-1), torch.ones(size[0]), atol=1e-5, rtol=0)
    for left_pad in (True, False):
        together, _ = generate(name, "--batch-size=64", *forced, left_pad=left_pad)
        for number, line in commands.lines(together, "A").items():
            torch.testing.assert_close(soft(line), expected[number], atol=1e-4, rtol=0)


@pytest.mark.parametrize("left_pad", [True, False])
def test_hard_alignment_with_the_reference(generate, left_pad):
    forced = ("--score-reference", "--batch-size=64")
    weights, _ = generate("softmax", *forced, "--print-alignment=soft", left_pad=left_pad)
    hard, _ = generate("softmax", *forced, "--print-alignment=hard", left_pad=left_pad)
    found = commands.lines(hard, "A")
    for number, line in commands.lines(weights, "A").items():
        best = soft(line)[:-1, :-1].argmax(1).tolist()  # without the ends
        assert found[number] == " ".join(f"{s}-{t}" for t, s in enumerate(best))
