"""The command lines of ``quickstart.sh`` and ``reproduce.sh``.

Imports the standard library only and nothing of the package, because the scripts also run this
file by its path, to refuse wrong flags before anything is installed:

    python options.py quickstart --attention oscarmax
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

MAPPINGS: dict[str, dict[str, float | None]] = {
    "softmax": {},
    "sparsemax": {},
    "pnormmax": {"p": 1.5},
    "fusedmax": {"lambda": 0.1},
    "oscarmax": {"lambda": 0.01},
    "oscarmax_prox": {"lambda": 0.01},
    "entmax": {"alpha": 1.5},
    "continuous_softmax": {"basis": None},
    "continuous_sparsemax": {"basis": None},
    "continuous_biweight": {"basis": None},
    "continuous_triweight": {"basis": None},
}
"""Mappings with the parameters of their own, apart from gamma, and their default values; None: that
of the model."""

SCORES = ("general", "dot", "mlp")

RANGES = {
    "gamma": ("a number > 0", lambda value: value > 0),
    "lambda": ("a number >= 0", lambda value: value >= 0),
    "p": ("a number > 1 and <= 2", lambda value: 1 < value <= 2),
    "alpha": ("a number > 1", lambda value: value > 1),
    "basis": ("a whole number >= 1", lambda value: value >= 1 and value % 1 == 0),
}

STAGES = ("prepare", "preprocess", "train", "generate", "score", "report")

OVERRIDE = re.compile(r"[a-z_0-9]+(\.[a-z_0-9]+)*=.*", re.DOTALL)


TOLD = re.compile(r"-(gamma|lambda|p|alpha|basis)(.+?)(?=-gamma|$)")
"""A parameter in the name of an attention; gamma is the last one."""


@dataclass(frozen=True)
class Attention:
    """A mapping with its parameters."""

    mapping: str
    gamma: float = 1.0
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        """For folders: everything that is not a default of every mapping, spelled out."""
        return "-".join([self.mapping, *(f"{name}{_short(value)}" for name, value in self._told())])

    @classmethod
    def from_name(cls, name: str) -> Attention:
        """What has this ``name``."""
        mapping, *_ = name.partition("-")
        values = {key: float(value) for key, value in TOLD.findall(name)}
        gamma = values.pop("gamma", 1.0)
        return cls(mapping, gamma, tuple(values.items()))

    @property
    def title(self) -> str:
        """For people."""
        return ", ".join(
            [self.mapping, *(f"{name} {_short(value)}" for name, value in self._told())]
        )

    @property
    def settings(self) -> dict[str, str | float]:
        """Keys of the model."""
        values = {
            f"attention_{name}": int(value) if name == "basis" else value
            for name, value in self.parameters
        }
        return {"attention": self.mapping, "attention_gamma": self.gamma, **values}

    def _told(self) -> list[tuple[str, float]]:
        return [*self.parameters, *([("gamma", self.gamma)] if self.gamma != 1 else [])]


@dataclass(frozen=True)
class Options:
    """What the user asked for.

    Attributes:
        attentions: to be compared; empty: those that the recipe names.
        output: folder for everything that is made.
        overrides: changes of the recipe and of its training settings, ``section.key=value``.
    """

    attentions: tuple[Attention, ...]
    output: Path
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Reproduction(Options):
    """What the user asked ``reproduce.sh`` for.

    Attributes:
        recipes: YAML files.
        directions: such as ``ro-en``; empty: all of each recipe.
        seeds: one run each.
        data: folder of plain text, instead of what the recipe would fetch.
        records: folder for the records of finished runs.
        stage: the last one to do.
        jobs: runs side by side; None: one on GPUs, else as many as there are cores.
        dry_run: print the commands only.
        parameters: of the mappings, for those that the recipe names.
    """

    recipes: tuple[Path, ...] = ()
    directions: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1,)
    data: Path | None = None
    records: Path = Path("records")
    stage: str = STAGES[-1]
    jobs: int | None = None
    dry_run: bool = False
    parameters: tuple[tuple[str, float], ...] = ()


class Parser(argparse.ArgumentParser):
    """Errors are one line, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message} (see --help)", file=sys.stderr)
        sys.exit(2)


def parse_quickstart(arguments: list[str]) -> Options:
    """Read and check the command line; wrong use ends the process with one line and status 2."""
    parser = Parser(
        prog="quickstart.sh",
        description="Train two small translation models on the embedded corpus, one with softmax "
        "and one with --attention; translate unseen verses; print BLEU; draw alignments. "
        "What is there already is not made again.",
        allow_abbrev=False,
    )
    _add_attention(parser, "fusedmax")
    _add_output(parser, "quickstart-out")
    given = parser.parse_intermixed_args(arguments)
    _refuse_empty(parser, given)
    wanted = _attentions(parser, given, [given.attention])
    baseline = Attention("softmax")
    return Options(
        attentions=tuple(dict.fromkeys((baseline, *wanted))),
        output=Path(os.path.abspath(given.output)),
        overrides=_overrides(parser, given, given.words),
    )


def parse_reproduce(arguments: list[str]) -> Reproduction:
    """Like ``parse_quickstart``."""
    parser = Parser(
        prog="reproduce.sh",
        description="From a recipe to a table: prepare and preprocess the corpus; train, "
        "translate and score a model for each mapping, direction and seed; report. What is there "
        "already is not made again, and a run that fails does not stop the others.",
        allow_abbrev=False,
    )
    _add_attention(parser, None)
    _add_output(parser, "runs")
    parser.add_argument(
        "--direction",
        metavar="SRC-TGT,...",
        help="translate from SRC to TGT (default: all directions of the recipe)",
    )
    parser.add_argument(
        "--seed", default="1", metavar="N,...", help="one run for each (default: 1)"
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder of plain text: train.SRC train.TGT valid.* test.*, gz or not, or one such "
        "folder a pair in it, as ro-en; of recipes that classify: of the files they name",
    )
    parser.add_argument(
        "--records",
        metavar="DIR",
        help="where the small records of finished runs are kept; a run that has one here is not "
        "repeated (default: records in --output)",
    )
    parser.add_argument(
        "--stage",
        default=STAGES[-1],
        choices=STAGES,
        help=f"stop after this stage: {', '.join(STAGES)} (default: the last)",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        help="runs side by side, on a GPU each where there are several (default: one on GPUs, "
        "else as many as there are processor cores)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the commands and do nothing")
    given = parser.parse_intermixed_args(arguments)

    _refuse_empty(parser, given)
    recipes = list(dict.fromkeys(word for word in given.words if "=" not in word))
    if not recipes:
        parser.error("name a recipe, such as configs/translation/plain.yaml")
    for recipe in recipes:
        if not Path(recipe).is_file():
            parser.error(f"{recipe}: no such recipe")
    if given.data is not None and not Path(given.data).is_dir():
        parser.error(f"--data {given.data}: no such folder")
    output = Path(os.path.abspath(given.output))
    names = _several(given.attention)
    return Reproduction(
        recipes=tuple(map(Path, recipes)),
        attentions=tuple(dict.fromkeys(_attentions(parser, given, names))),
        directions=_several(given.direction),
        seeds=tuple(_positive(parser, "--seed", seed) for seed in _several(given.seed)),
        data=Path(os.path.abspath(given.data)) if given.data is not None else None,
        output=output,
        records=Path(os.path.abspath(given.records)) if given.records else output / "records",
        stage=given.stage,
        jobs=_positive(parser, "--jobs", given.jobs) if given.jobs is not None else None,
        dry_run=given.dry_run,
        overrides=_overrides(parser, given, [word for word in given.words if "=" in word]),
        parameters=tuple(_parameters(parser, given).items()),
    )


def recipe_attentions(
    names: list[str], parameters: tuple[tuple[str, float], ...]
) -> tuple[Attention, ...]:
    """The mappings that a recipe names, with their default parameters or those given.

    Raises:
        ValueError: there is no such mapping.
    """
    names = list(dict.fromkeys(map(str, names)))
    unknown = [name for name in names if name not in MAPPINGS]
    if unknown:
        raise ValueError(f"attention must be of {', '.join(MAPPINGS)}, got {unknown[0]!r}")
    given = dict(parameters)
    gamma = given.pop("gamma", 1.0)
    chosen = []
    for name in names:
        values = [(key, given.get(key, usual)) for key, usual in MAPPINGS[name].items()]
        told = tuple((key, value) for key, value in values if value is not None)
        chosen.append(Attention(name, gamma, told))
    return tuple(chosen)


def _add_attention(parser: Parser, default: str | None) -> None:
    several = default is None
    parser.add_argument(
        "--attention",
        default=default,
        metavar="NAME,..." if several else "NAME",
        help=f"mapping from scores to weights: {', '.join(MAPPINGS)} "
        f"(default: {default or 'those the recipe names'})",
    )
    parser.add_argument(
        "--attention-score",
        choices=SCORES,
        help="how scores come from decoder and encoder states (default: as the recipe says)",
    )
    for name, (allowed, _) in RANGES.items():
        takers = {m: own[name] for m, own in MAPPINGS.items() if name in own}
        usual = ", ".join(
            f"{value:g} for {mapping}" for mapping, value in takers.items() if value is not None
        )
        usual = usual or ("that of the model, for continuous attention" if takers else "1")
        parser.add_argument(
            f"--attention-{name}",
            metavar=name[0].upper(),
            help=f"{allowed} (default: {usual})",
        )


def _add_output(parser: Parser, default: str) -> None:
    parser.add_argument(
        "--output",
        default=default,
        metavar="DIR",
        help=f"where everything is written (default: {default})",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="KEY=VALUE" if default != "runs" else "RECIPE or KEY=VALUE",
        help="KEY=VALUE changes a setting for all models, e.g. optimization.max_update=4000",
    )


def _refuse_empty(parser: Parser, given: argparse.Namespace) -> None:
    """An unset variable of a shell, say, must not mean this folder, or the default."""
    for flag in ("attention", "direction", "seed", "output", "data", "records"):
        text = getattr(given, flag, None)
        if text is not None and not text.strip(" ,"):
            parser.error(f"--{flag} must not be empty, got {text!r}")


def _parameters(parser: Parser, given: argparse.Namespace) -> dict[str, float]:
    """Those of the mappings that were given, checked."""
    values: dict[str, float] = {}
    for name, (allowed, holds) in RANGES.items():
        text = getattr(given, f"attention_{name}")
        if text is None:
            continue
        value = _number(text)
        if value is None or not holds(value):
            parser.error(f"--attention-{name} must be {allowed}, got {text!r}")
        values[name] = value
    return values


def _attentions(
    parser: Parser, given: argparse.Namespace, names: list[str] | tuple[str, ...]
) -> tuple[Attention, ...]:
    values = _parameters(parser, given)
    for name in names:
        if name not in MAPPINGS:
            parser.error(f"--attention must be one of {', '.join(MAPPINGS)}, got {name!r}")
    for name in set(values) - {"gamma"}:
        if names and not any(name in MAPPINGS[mapping] for mapping in names):
            takers = ", ".join(m for m, parameters in MAPPINGS.items() if name in parameters)
            parser.error(
                f"--attention-{name} belongs to {takers}; --attention is {','.join(names)}"
            )
    return recipe_attentions(list(names), tuple(values.items()))


def _overrides(parser: Parser, given: argparse.Namespace, words: list[str]) -> tuple[str, ...]:
    for word in words:
        if not OVERRIDE.fullmatch(word):
            parser.error(f"settings are given as section.key=value, got {word!r}")
    score = given.attention_score
    return (*words, *([f"model.attention_score={score}"] if score else []))


def _several(text: str | None) -> tuple[str, ...]:
    """Parts between commas, each once."""
    return tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def _positive(parser: Parser, flag: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 2**32:
        parser.error(f"{flag} must be a whole number >= 1 and < 2**32, got {text!r}")
    return int(text)


def _short(value: float) -> str:
    """All digits, but no ``.0``."""
    return repr(float(value)).removesuffix(".0")


def _number(text: str) -> float | None:
    """A finite number, else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


if __name__ == "__main__":
    {"quickstart": parse_quickstart, "reproduce": parse_reproduce}[sys.argv[1]](sys.argv[2:])
