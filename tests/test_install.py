"""What pip installs, and that every way of importing the plugin registers it once."""

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import packaging.markers
import packaging.requirements
import pytest
import setuptools

ROOT = Path(__file__).resolve().parents[1]

USER_DIR = """
from argparse import Namespace
from fairseq.utils import import_user_module
import_user_module(Namespace(user_dir={folder!r}))
"""
# Registering an architecture a second time raises, so arriving here means once at most.
REPORT = """
import sys
from fairseq.models import MODEL_REGISTRY
from fairseq.scoring import SCORER_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from fairseq import checkpoint_utils
names = [name for name in MODEL_REGISTRY if name.startswith("regattn_lstm")]
assert len(names) > 1, names
assert "regattn_lstm" in MODEL_REGISTRY
assert TASK_REGISTRY["summarization"].__module__.startswith("fairseq_regattn.")
assert "rouge" in SCORER_REGISTRY
assert hasattr(checkpoint_utils.load_checkpoint_to_cpu, "__wrapped__")
assert not hasattr(checkpoint_utils.load_checkpoint_to_cpu.__wrapped__, "__wrapped__")
print(sys.modules[MODEL_REGISTRY["regattn_lstm"].__module__].__file__)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        "import fairseq_regattn, fairseq",
        "import fairseq, fairseq_regattn",
        "import fairseq_regattn, fairseq; import importlib; importlib.reload(fairseq_regattn)",
        "import fairseq_regattn.models",
        USER_DIR,
        "import fairseq_regattn" + USER_DIR,
        USER_DIR + "import fairseq_regattn, fairseq_regattn.models" + USER_DIR,
    ],
    ids=["before", "after", "reload", "models", "user-dir", "both", "user-dir-first"],
)
def test_registers_once(imports, run_python, package_dir):
    code = imports.replace("{folder!r}", repr(str(package_dir))) + "\n" + REPORT
    result = run_python("-c", code, path=[ROOT])
    assert result.stdout.splitlines()[-1].startswith(str(package_dir))


@pytest.mark.slow
def test_user_dir_alone_registers(run_python, package_dir, tmp_path):
    """Not importable by name, as without pip: the folder given is all there is."""
    copy = tmp_path / "elsewhere" / "fairseq_regattn"
    shutil.copytree(package_dir, copy)
    result = run_python("-c", USER_DIR.format(folder=str(copy)) + REPORT)
    assert result.stdout.splitlines()[-1].startswith(str(copy))


@pytest.mark.slow
def test_user_dir_wins_over_the_installed_one(run_python, package_dir, tmp_path):
    copy = tmp_path / "checkout" / "fairseq_regattn"
    shutil.copytree(package_dir, copy)
    result = run_python("-c", USER_DIR.format(folder=str(copy)) + REPORT, path=[ROOT])
    assert result.stdout.splitlines()[-1].startswith(str(copy))


def test_main_prints_the_folder_without_importing_torch(run_python, package_dir):
    result = run_python("-m", "fairseq_regattn", path=[ROOT])
    assert result.stdout == f"{package_dir}\n"
    code = """
import runpy, sys
try:
    runpy.run_module("fairseq_regattn", run_name="__main__", alter_sys=True)
except SystemExit as end:
    assert not end.code, end.code
print(sorted({"torch", "fairseq", "numba", "numpy"} & set(sys.modules)))
"""
    assert run_python("-c", code, path=[ROOT]).stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_wheel_holds_the_package_and_its_corpus(tmp_path, run_python):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "LICENSE", "fairseq_regattn"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-w", str(tmp_path / "dist")]
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", *options, str(source)], check=True)
    (wheel,) = (tmp_path / "dist").glob("fairseq_regattn-*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)

    package = ROOT / "fairseq_regattn"
    kinds = ("*.py", "data/*.tsv.gz", "data/*.txt", "*.css", "*.js")
    shipped = [path for kind in kinds for path in package.rglob(kind)]
    assert {".py", ".gz", ".txt", ".css", ".js"} == {path.suffix for path in shipped}
    missing = [
        p for p in shipped if not (site / "fairseq_regattn" / p.relative_to(package)).exists()
    ]
    assert not missing
    assert not [p for p in site.rglob("*") if p.name.startswith("test_")]
    printed = run_python("-m", "fairseq_regattn", path=[site]).stdout
    assert printed == f"{site / 'fairseq_regattn'}\n"


@pytest.fixture
def setup_arguments(monkeypatch, tmp_path):
    """``setup_arguments(dist-info, ...)``: what setup.py declares where these are installed."""
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))

    def read(*installed):
        for name, version in installed:
            info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            )
        declared = {}
        monkeypatch.setattr(setuptools, "setup", declared.update)
        exec(
            compile((ROOT / "setup.py").read_text(), str(ROOT / "setup.py"), "exec"),
            {"__file__": str(ROOT / "setup.py"), "__name__": "setup"},
        )
        return declared

    return read


def fairseq_requirements(declared):
    every = map(packaging.requirements.Requirement, declared["install_requires"])
    return [r for r in every if r.name in ("fairseq", "ve-fairseq", "fairseq-fixed")]


@pytest.mark.parametrize("pip", ["23.0.1", "24.0", "24.1", "26.2", None])
def test_one_fairseq_for_every_platform(setup_arguments, pip):
    declared = setup_arguments(*([("pip", pip)] if pip else []))
    requirements = fairseq_requirements(declared)
    chosen = {}
    for python in ("3.9", "3.10", "3.11", "3.12", "3.13"):
        for system, machine in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")):
            environment = {
                **packaging.markers.default_environment(),
                "python_version": python,
                "sys_platform": system,
                "platform_machine": machine,
            }
            (chosen[python, machine],) = [
                r.name for r in requirements if r.marker.evaluate(environment)
            ]
    old = pip in ("23.0.1", "24.0")  # pip >= 24.1 cannot install the official release
    assert chosen["3.10", "x86_64"] == ("fairseq" if old else "fairseq-fixed")
    assert chosen["3.11", "x86_64"] == chosen["3.12", "x86_64"] == "ve-fairseq"
    assert chosen["3.13", "x86_64"] == chosen["3.11", "arm64"] == "fairseq-fixed"


@pytest.mark.parametrize("name", ["fairseq", "ve-fairseq", "fairseq-fixed"])
def test_a_fairseq_that_is_there_stays(setup_arguments, name):
    (requirement,) = fairseq_requirements(setup_arguments(("pip", "26.0"), (name, "0.12.9")))
    assert requirement.name == name
    assert requirement.marker is None
    assert requirement.specifier.contains("0.12.9")


@pytest.mark.parametrize(
    ("there", "kept", "numpy"),
    [
        (None, ["2.0.0", "2.13.0+cpu", "2.14.1"], "2.4.0"),
        ("2.13.0+cpu", ["2.13.0+cpu", "2.14.1"], "2.4.0"),
        ("2.9.1+cpu", ["2.9.1+cpu"], "2.4.0"),
        ("2.2.2+cu121", ["2.2.2+cu121"], "1.26.4"),
    ],
)
def test_the_torch_that_is_there_stays(setup_arguments, there, kept, numpy):
    """Seen with pip 26: a range alone lets torchaudio replace torch 2.2.2 by a CUDA 2.14.1."""
    declared = setup_arguments(*([("torch", there)] if there else []))
    every = map(packaging.requirements.Requirement, declared["install_requires"])
    specifiers = {r.name: r.specifier for r in every}
    assert all(specifiers["torch"].contains(version) for version in kept)
    assert specifiers["torch"].contains("2.14.1") == ("2.14.1" in kept)
    assert specifiers["numpy"].contains(numpy)
    assert specifiers["numpy"].contains("2.0.0") == (numpy > "2")
