"""The doctor finds what is broken, says what to do, and exits accordingly."""

import importlib
import sys

import numba
import pytest
import torch
from fairseq import checkpoint_utils, models

from fairseq_regattn import doctor
from fairseq_regattn.mappings import _kernels


def examine(capsys):
    """Exit status, and the lines of each check by its name."""
    status = doctor.main()
    found, name = {}, None
    for line in capsys.readouterr().out.splitlines():
        verdict, _, rest = line.strip().partition(" ")
        if verdict in ("ok", "FAIL", "note"):
            name, _, text = rest.strip().partition(": ")
            found[name] = (verdict, text)
        elif verdict == "->":
            found[name] += (rest,)
    return status, found


def test_everything_works_here(capsys):
    status, found = examine(capsys)
    assert list(found) == list(doctor.CHECKS)
    assert {name for name, (verdict, *_) in found.items() if verdict != "ok"} == set()
    assert status == 0
    assert found["registered"][1] == ", ".join(doctor.REGISTERED)


@pytest.mark.parametrize("name", doctor.REGISTERED)
def test_what_fairseq_does_not_know_is_named(name, monkeypatch):
    kind, module, registry = doctor.REGISTERED[name]
    monkeypatch.delitem(getattr(importlib.import_module(module), registry), name)
    with pytest.raises(doctor.Problem, match=f"does not know the {kind} {name}$"):
        doctor.check_registered()


def test_two_fairseqs_are_a_clash(capsys, monkeypatch, tmp_path):
    present = doctor.installed_fairseq()
    for name in {"fairseq", "fairseq_fixed"} - {n.replace("-", "_") for n in present}:
        info = tmp_path / f"{name}-0.12.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.12.2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    status, found = examine(capsys)
    verdict, text, remedy = found["fairseq distribution"]
    assert (status, verdict) == (1, "FAIL")
    assert "fairseq-fixed" in text
    assert remedy.startswith("pip uninstall -y ")


@pytest.mark.parametrize("library", ["sacremoses", "sentencepiece", "sacrebleu"])
def test_a_missing_library_hides_no_other(capsys, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    status, found = examine(capsys)
    assert status == 1
    assert found[library][:2] == ("FAIL", "not installed")
    assert [name for name, (verdict, *_) in found.items() if verdict == "FAIL"] == [library]


def test_unreadable_checkpoints(capsys, monkeypatch):
    load = checkpoint_utils.load_checkpoint_to_cpu
    monkeypatch.setattr(checkpoint_utils, "load_checkpoint_to_cpu", load.__wrapped__)
    status, found = examine(capsys)
    if status == 0:
        pytest.skip("this torch reads fairseq's checkpoints without help")
    assert found["checkpoints"][0] == "FAIL"


def test_not_registered(capsys, monkeypatch):
    monkeypatch.setattr(models, "ARCH_MODEL_REGISTRY", {"lstm": object})
    status, found = examine(capsys)
    assert status == 1
    assert found["registered"][0] == "FAIL"


def test_a_gpu_without_numba_cuda_is_a_note(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(torch.version, "cuda", "12.9")
    monkeypatch.setattr(_kernels, "cuda_problem", lambda: "ImportError: no numba.cuda")
    status, found = examine(capsys)
    assert status == 0
    verdict, text, remedy = found["mappings on cuda"]
    assert verdict == "note"
    assert "no numba.cuda" in text
    assert "numba-cuda[cu12]" in remedy
    monkeypatch.setattr(_kernels, "cuda_problem", lambda: None)
    assert examine(capsys)[1]["mappings on cuda"] == ("ok", "compiled for the GPU")


def test_no_cache_is_a_note(capsys, monkeypatch):
    def njit(**_options):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba, "njit", njit)
    status, found = examine(capsys)
    assert status == 0
    assert found["numba cache"][0] == "note"
    assert "NUMBA_CACHE_DIR" in found["numba cache"][2]
