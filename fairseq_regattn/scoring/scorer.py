"""``fairseq-generate --scoring rouge``."""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer

from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.scoring.rouge import Limit, Rouge, System


@dataclass
class RougeConfig(FairseqDataclass):
    """Flags and YAML keys, of the scorer and of ``--eval-rouge``."""

    rouge_types: str = field(
        default="1,2,L",
        metadata={"help": "ROUGE of these types: 1 to 9, L, Lsum, W-1.2 (default: 1,2,L)"},
    )
    rouge_stem: bool = field(
        default=False, metadata={"help": "compare stems of words, as ROUGE-1.5.5 -m does"}
    )
    rouge_bytes: Optional[int] = field(
        default=None, metadata={"help": "cut every text after so many bytes, as -b does"}
    )
    rouge_words: Optional[int] = field(
        default=None, metadata={"help": "cut every text after so many words, as -l does"}
    )


def build_rouge(cfg: Any) -> Rouge:
    """What the options ask for.

    Args:
        cfg: a :class:`RougeConfig`, or a configuration that has its keys.

    Raises:
        UsageError: a value out of range, or two limits; names the flag and the value.
    """
    sizes = {"bytes": cfg.rouge_bytes, "words": cfg.rouge_words}
    limits = [Limit(unit, size) for unit, size in sizes.items() if size is not None]
    for unit, size in limits:
        if size < 1:
            raise ArgumentError(f"--rouge-{unit}", size, "at least 1")
    if len(limits) > 1:
        given = " and ".join(f"--rouge-{unit} {size}" for unit, size in limits)
        raise UsageError(f"{given} exclude each other")
    types = tuple(name.strip() for name in cfg.rouge_types.split(","))
    try:
        return Rouge(types, stem=cfg.rouge_stem, limit=limits[0] if limits else None)
    except ArgumentError as error:
        raise ArgumentError("--rouge-types", cfg.rouge_types, error.allowed) from error


@register_scorer("rouge", dataclass=RougeConfig)
class RougeScorer(BaseScorer):
    """ROUGE of the lines T (references) and D (the best of each sentence's hypotheses).

    fairseq adds sentences in the order of its batches and does not tell their numbers, so the
    result is :meth:`System.summary`, which needs neither: the same for every batch size, and the
    same as ``python -m fairseq_regattn.scoring.rouge`` prints first for that output.

    Raises:
        UsageError: as for :func:`build_rouge`.
    """

    def __init__(self, cfg: Any):
        super().__init__(cfg)
        self.rouge = build_rouge(cfg)

    def system(self) -> System:
        """All sentences so far; those without a hypothesis score 0 and count."""
        return self.rouge.system(self.pred, [[reference] for reference in self.ref])

    def score(self) -> float:
        """Mean F1 of the last type, which is ROUGE-L unless others were asked for, in percent."""
        return 100 * self.system().means()[self.rouge.types[-1]].f1

    def result_string(self) -> str:
        """A line a type, then the signature, below what fairseq prints in front of it."""
        return "\n".join(["", *self.system().lines()])
