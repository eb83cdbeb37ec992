"""``fairseq-train``: what is learned does not depend on how the work was cut up."""

import pytest
import torch

from fairseq_regattn.attention import ATTENTIONS, CONTINUOUS

from . import commands


def same(one, two, **tolerance):
    """Equal parameter by parameter; bit by bit unless a tolerance is given."""
    assert set(one) == set(two)
    for name in one:
        if tolerance:
            torch.testing.assert_close(one[name], two[name], **tolerance, msg=name)
        else:
            assert torch.equal(one[name], two[name]), name


def flat(value, path=""):
    """Every tensor in nested dicts and lists, by its path."""
    if torch.is_tensor(value):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = {}
    for key, inner in items:
        if torch.is_tensor(inner) or isinstance(inner, (dict, list, tuple)):
            found.update(flat(inner, f"{path}/{key}"))
    return found


def test_preprocess_makes_both_sides(data):
    for name in ("dict.xx.txt", "dict.yy.txt", "train.xx-yy.xx.bin", "test.xx-yy.yy.idx"):
        assert (data / name).is_file()


@pytest.mark.parametrize("name", [*sorted(ATTENTIONS), *CONTINUOUS])
def test_version_and_config_are_saved(trained, name):
    saved = commands.state(trained(name))
    signature = bytes(saved["model"]["decoder.attention.mapping_version"].tolist()).rstrip(b"\0")
    assert signature.decode().startswith(f"{name}(gamma=1.0")
    assert saved["cfg"]["model"]["attention"] == name


@pytest.mark.parametrize("name", ["softmax", "fusedmax"])
def test_resumed_equals_uninterrupted(data, tmp_path, name):
    flags = ("--attention", name, "--dropout", 0.3)
    commands.train(data, tmp_path / "whole", *flags, "--max-epoch", 3)
    commands.train(data, tmp_path / "cut", *flags, "--max-epoch", 1)
    first = commands.state(tmp_path / "cut" / "checkpoint_last.pt")["model"]
    commands.train(data, tmp_path / "cut", *flags, "--max-epoch", 3)
    whole, cut = (commands.state(tmp_path / n / "checkpoint_last.pt") for n in ("whole", "cut"))
    same(whole["model"], cut["model"])
    same(flat(whole["last_optimizer_state"]), flat(cut["last_optimizer_state"]))
    assert whole["optimizer_history"][-1] == cut["optimizer_history"][-1]
    assert any(not torch.equal(first[key], cut["model"][key]) for key in first)


@pytest.mark.slow
def test_resumed_in_the_middle_of_an_epoch(data, tmp_path):
    flags = ("--attention", "oscarmax", "--save-interval-updates", 7)
    commands.train(data, tmp_path / "whole", *flags, "--max-update", 14)
    commands.train(data, tmp_path / "cut", *flags, "--max-update", 7)
    commands.train(data, tmp_path / "cut", *flags, "--max-update", 14)
    whole, cut = (commands.state(tmp_path / n / "checkpoint_2_14.pt") for n in ("whole", "cut"))
    same(whole["model"], cut["model"])


@pytest.mark.parametrize("name", ["softmax", "fusedmax"])
def test_update_freq_equals_a_larger_batch(data, tmp_path, name):
    """One batch of 16 sentences, or two of 8, padded differently."""
    flags = ("--attention", name, "--dropout", 0, "--train-subset", "valid", "--max-epoch", 3)
    flags = (*flags, "--optimizer", "sgd", "--clip-norm", 0, "--lr", 1)
    one = commands.train(data, tmp_path / "one", *flags, "--batch-size", 16)
    two = commands.train(data, tmp_path / "two", *flags, "--batch-size", 8, "--update-freq", 2)
    one, two = (commands.state(out / "checkpoint_last.pt") for out in (one, two))
    assert one["optimizer_history"][-1]["num_updates"] == 3
    assert two["optimizer_history"][-1]["num_updates"] == 3
    same(one["model"], two["model"], atol=1e-6, rtol=1e-5)


def test_best_checkpoint_by_bleu(data, tmp_path):
    """Validation translates, scores, and keeps the epoch of the best score."""
    bleu = '{"beam": 2, "max_len_b": 16}'
    flags = ("--eval-bleu", "--eval-bleu-detok", "moses", "--eval-bleu-args", bleu)
    flags += ("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric")
    base = commands.TINY.replace("--disable-validation", "").replace("--no-epoch-checkpoints", "")
    flags += ("--attention", "sparsemax", "--max-epoch", 3)
    out = commands.train(data, tmp_path, *flags, base=base)
    scores = {}
    for epoch in (1, 2, 3):
        extra = commands.state(out / f"checkpoint{epoch}.pt")["extra_state"]
        scores[epoch] = extra["val_loss"]
        assert extra["best"] == max(scores.values())
    best = commands.state(out / "checkpoint_best.pt")
    assert best["extra_state"]["val_loss"] == max(scores.values()) >= 0
    commands.train(data, tmp_path, *flags[:-1], 4, base=base)  # with the scores it had saved
    assert (
        commands.state(out / "checkpoint_last.pt")["extra_state"]["best"]
        >= best["extra_state"]["best"]
    )


def test_padding_to_a_multiple(data, tmp_path):
    flags = ("--attention", "fusedmax", "--dropout", 0, "--max-epoch", 1)
    plain = commands.train(data, tmp_path / "plain", *flags)
    more = commands.train(data, tmp_path / "more", *flags, "--required-seq-len-multiple", 8)
    plain, more = (commands.state(out / "checkpoint_last.pt") for out in (plain, more))
    same(plain["model"], more["model"], atol=1e-4, rtol=1e-3)


def test_shared_embeddings(text, tmp_path):
    data = commands.preprocess(text, tmp_path / "joined", "--joined-dictionary")
    out = commands.train(
        data, tmp_path / "out", "--attention", "entmax", "--share-all-embeddings", "--max-epoch", 1
    )
    saved = commands.state(out / "checkpoint_last.pt")["model"]
    same(
        {"": saved["encoder.embed_tokens.weight"]},
        {"": saved["decoder.embed_tokens.weight"]},
    )
    assert not any("output_layer" in name for name in saved)
    output, _ = commands.generate(data, out / "checkpoint_last.pt", tmp_path / "generated")
    assert len(commands.lines(output, "H")) == 64


def test_architecture_keeps_its_values_in_the_checkpoint(data, tmp_path):
    flags = ("--max-update", 1, "--arch", "regattn_lstm_opennmt")
    sizes = ("--encoder-embed-dim", 8, "--decoder-embed-dim", 8)
    out = commands.train(data, tmp_path / "out", *flags, *sizes)
    model = commands.state(out / "checkpoint_last.pt")["cfg"]["model"]
    assert (model["encoder_layers"], model["decoder_layers"]) == (2, 2)
    assert (model["encoder_embed_dim"], model["dropout"]) == (8, 0.1)
    assert model["decoder_dropout_in"] == 0
    output, _ = commands.generate(data, out / "checkpoint_last.pt", tmp_path / "generated")
    assert len(commands.lines(output, "H")) == 64


def test_moving_average_of_parameters(data, tmp_path):
    """fairseq decays every buffer that it does not know for a version."""
    commands.train(data, tmp_path, "--attention", "fusedmax", "--store-ema", "--max-update", "2")
    saved = commands.state(tmp_path / "checkpoint_last.pt")
    ema = saved["extra_state"]["ema"]
    assert "decoder.attention.score.key_projection.weight" in ema
