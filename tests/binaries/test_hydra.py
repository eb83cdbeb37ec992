"""``fairseq-hydra-train`` with YAML files, in this process and as a command."""

import re

import pytest
from fairseq.dataclass.initialize import hydra_init
from fairseq_cli import hydra_train
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from vqa.conftest import made, sources  # noqa: F401  fixtures of the folder tests/vqa

from fairseq_regattn.classification.__main__ import main as prepare
from fairseq_regattn.vqa.__main__ import main as prepare_questions

from . import commands, processes

YAML = """\
# @package _group_
common: {{cpu: true, seed: 7, log_format: none}}
task: {{_name: translation, data: "???"}}
model:
{model}
criterion: {{_name: cross_entropy}}
optimizer: {{_name: adam}}
lr_scheduler: {{_name: fixed}}
optimization: {{max_update: 2, lr: [0.01], clip_norm: 1.0}}
dataset: {{batch_size: 16, num_workers: 0, disable_validation: true}}
checkpoint: {{no_epoch_checkpoints: true, save_dir: "???"}}
"""
SIZES = {"encoder_embed_dim": 16, "decoder_embed_dim": 16}


@pytest.fixture
def write(tmp_path):
    """``write(key=value, ...)``: a folder with ``toy.yaml``, its model made of these."""

    def write(**model):
        inner = "\n".join(f"  {key}: {value}" for key, value in model.items())
        (tmp_path / "toy.yaml").write_text(YAML.format(model=inner))
        return tmp_path

    return write


@pytest.fixture
def train(data, tmp_path):
    """``train(folder, *overrides)``: the configuration in the checkpoint."""

    def train(folder, *overrides, name="toy"):
        GlobalHydra.instance().clear()
        hydra_init(name)
        out = tmp_path / "checkpoints"
        places = [f"task.data={data}", f"checkpoint.save_dir={out}"]
        with initialize_config_dir(str(folder), version_base="1.1"):
            hydra_train._hydra_main(compose(name, overrides=[*places, *overrides]))
        GlobalHydra.instance().clear()
        return commands.state(out / "checkpoint_last.pt")

    return train


def test_the_base_model(train, write):
    folder = write(_name="regattn_lstm", attention="fusedmax", attention_lambda=0.3, **SIZES)
    saved = train(folder)
    assert saved["cfg"]["model"]["attention_lambda"] == 0.3
    signature = bytes(saved["model"]["decoder.attention.mapping_version"].tolist())
    assert signature.startswith(b"fusedmax(gamma=1.0, lam=0.3)\0")


def test_the_same_model_as_by_flags(train, write, data, tmp_path):
    saved = train(write(_name="regattn_lstm", attention="oscarmax", **SIZES), "+model.dropout=0")
    flags = ("--attention", "oscarmax", "--dropout", 0, "--max-update", 2)
    base = commands.TINY.replace("--encoder-bidirectional", "")
    out = commands.train(data, tmp_path / "flags", *flags, base=base)
    by_flags = commands.state(out / "checkpoint_last.pt")
    assert {k: v.shape for k, v in saved["model"].items()} == {
        k: v.shape for k, v in by_flags["model"].items()
    }
    for key in ("attention", "attention_lambda", "encoder_bidirectional", "decoder_layers"):
        assert saved["cfg"]["model"][key] == by_flags["cfg"]["model"][key], key


def test_overrides(train, write):
    folder = write(_name="regattn_lstm", attention="softmax", **SIZES)
    saved = train(folder, "model.attention=entmax", "+model.attention_alpha=1.3")
    assert saved["cfg"]["model"]["attention_alpha"] == 1.3


@pytest.mark.parametrize("width", [None, 20])
def test_an_architecture(train, write, data, tmp_path, width):
    """Its values hold, except those that the file gives; and the checkpoint can be used."""
    given = {} if width is None else {"encoder_embed_dim": width}
    saved = train(write(_name="regattn_lstm_small", attention="sparsemax", **given))
    shapes = {key: tuple(value.shape) for key, value in saved["model"].items()}
    assert shapes["encoder.embed_tokens.weight"][1] == (width or 192)
    assert shapes["decoder.embed_tokens.weight"][1] == 192
    assert "encoder.lstm.weight_ih_l0_reverse" in shapes
    path = tmp_path / "checkpoints" / "checkpoint_last.pt"
    output, _ = commands.generate(data, path, tmp_path / "generated")
    assert len(commands.lines(output, "H")) == 64


SUMMARIES = """\
{_name: summarization, eval_rouge: true, eval_rouge_args: '{"beam": 2, "max_len_b": 12}',
  rouge_types: "1,Lsum", rouge_stem: true,"""


def test_the_best_checkpoint_by_rouge(train, write, data, tmp_path):
    """The task and its options from YAML, as ``--task summarization --eval-rouge`` has them."""
    folder = write(_name="regattn_lstm", attention="sparsemax", **SIZES)
    yaml = (folder / "toy.yaml").read_text().replace("{_name: translation,", SUMMARIES)
    best = "best_checkpoint_metric: rougeLsum, maximize_best_checkpoint_metric: true"
    yaml = yaml.replace("checkpoint: {", f"checkpoint: {{{best}, ")
    yaml = yaml.replace("disable_validation: true", "valid_subset: test")
    (folder / "toy.yaml").write_text(yaml)
    score = train(folder, "optimization.max_update=20")["extra_state"]["best"]
    assert score > 0
    path = tmp_path / "checkpoints" / "checkpoint_best.pt"
    asked = ["--scoring=rouge", "--rouge-types=Lsum", "--rouge-stem", "--beam=2", "--min-len=1"]
    output, _ = commands.generate(data, path, tmp_path / "generated", *asked)
    assert re.search(rf"^ROUGE-Lsum .* F1 {score:.2f} ", output, re.MULTILINE)


@pytest.mark.parametrize("name", ["regattn_lstm", "regattn_lstm_small"])
def test_an_unknown_key_is_refused(train, write, name):
    with pytest.raises(Exception, match=r"atention"):
        train(write(_name=name, atention="softmax", **SIZES))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["regattn_lstm", "regattn_lstm_small"])
def test_the_command(write, data, name):
    """There the plugin is imported late, and an architecture must hold all the same."""
    folder = write(_name=name, attention="sparsemax", decoder_hidden_size=24)
    options = [f"--config-dir={folder}", "--config-name=toy", f"task.data={data}"]
    options += [f"checkpoint.save_dir={folder}/out", f"common.user_dir={processes.USER_DIR}"]
    options += [f"hydra.run.dir={folder}/hydra"]
    process = processes.start("fairseq-hydra-train", *options, user_dir=None)
    status, _, err = processes.finish(process)
    assert status == 0, err
    saved = commands.state(folder / "out" / "checkpoint_last.pt")["model"]
    width = {"regattn_lstm": 512, "regattn_lstm_small": 192}[name]
    assert saved["encoder.embed_tokens.weight"].shape[1] == width


@pytest.mark.slow
def test_the_command_refuses_an_unknown_key(write, data):
    folder = write(_name="regattn_lstm_small", atention="sparsemax")
    options = [f"--config-dir={folder}", "--config-name=toy", f"task.data={data}"]
    options += [f"checkpoint.save_dir={folder}/out", f"common.user_dir={processes.USER_DIR}"]
    options += [f"hydra.run.dir={folder}/hydra"]
    status, _, err = processes.finish(
        processes.start("fairseq-hydra-train", *options, user_dir=None)
    )
    assert status != 0
    assert re.search("Key 'atention' not in", err), err


PROFILES = processes.ROOT / "configs" / "train"
CLASSIFIERS = {"classifier": 1, "nli": 2}  # and how many texts have one label
NAMES = sorted(path.stem for path in PROFILES.glob("*.yaml"))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (*CLASSIFIERS, "vqa")])
def test_the_profiles(train, name):
    """configs/train/*.yaml, on another corpus and for two updates."""
    small = ["model.attention=fusedmax", "optimization.max_update=2", "common.cpu=true"]
    if name == "quickstart":
        small += ["model.share_all_embeddings=false"]  # this corpus has two dictionaries
    languages = ["task.source_lang=xx", "task.target_lang=yy", "common.log_format=none"]
    plugin = f"common.user_dir={processes.USER_DIR}"
    saved = train(PROFILES, *small, *languages, plugin, name=name)
    assert saved["cfg"]["model"]["attention"] == "fusedmax"
    model = saved["model"]
    assert bytes(model["decoder.attention.mapping_version"].tolist()).startswith(b"fusedmax(")
    width, layers, both = {  # of embeddings; whether the source is read in both directions
        "modern": (512, 2, True),
        "paper": (500, 2, False),
        "quickstart": (192, 1, True),
        "small": (256, 1, True),
    }[name]
    assert model["encoder.embed_tokens.weight"].shape[1] == width
    found = [key for key in model if key.startswith("encoder.lstm.weight_ih_")]
    assert len(found) == layers * (1 + both)
    assert saved["optimizer_history"][-1]["num_updates"] == 2


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_profiles_of_classifiers(train, write_rows, tmp_path, name):
    inputs = CLASSIFIERS[name]
    rows = write_rows(tmp_path / "train.tsv", 90, inputs)
    assert prepare(["prepare", f"--train={rows}", f"--out={tmp_path}", f"--inputs={inputs}"]) == 0
    small = ["model.attention=fusedmax", "optimization.max_update=2", "common.cpu=true"]
    places = [f"common.user_dir={processes.USER_DIR}", f"task.data={tmp_path / 'bin'}"]
    saved = train(PROFILES, *small, *places, "common.log_format=none", name=name)
    model = saved["model"]
    assert bytes(model["attention.mapping_version"].tolist()).startswith(b"fusedmax(")
    assert model["words.weight"].shape[1] == 300
    assert saved["optimizer_history"][-1]["num_updates"] == 2


def test_the_profile_of_questions_about_images(train, sources, tmp_path):  # noqa: F811
    data = tmp_path / "data"
    assert prepare_questions(["prepare", *sources, f"--out={data}"]) == 0
    small = ["model.stem=4", "optimization.max_update=2", "common.cpu=true"]
    places = [f"common.user_dir={processes.USER_DIR}", f"task.data={data}"]
    saved = train(PROFILES, *small, *places, "common.log_format=none", name="vqa")
    assert bytes(saved["model"]["attention.mapping_version"].tolist()).startswith(b"continuous_")
    assert saved["model"]["words.weight"].shape[1] == 300
    assert saved["optimizer_history"][-1]["num_updates"] == 2
