"""``--task summarization``: translation into the same language, validated by ROUGE."""

import json
import logging
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from fairseq import utils
from fairseq.data import encoders
from fairseq.dataclass.configs import GenerationConfig
from fairseq.logging import metrics
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fairseq_regattn.errors import ArgumentError, UsageError, setting_error
from fairseq_regattn.scoring.scorer import RougeConfig, build_rouge

logger = logging.getLogger(__name__)


@dataclass
class SummarizationConfig(RougeConfig, TranslationConfig):
    """Flags and YAML keys: those of translation, and those of its BLEU for ROUGE."""

    eval_rouge: bool = field(
        default=False, metadata={"help": "write summaries in validation and log their ROUGE"}
    )
    eval_rouge_args: Optional[str] = field(
        default="{}",
        metadata={"help": "options of fairseq-generate as JSON, such as '{\"beam\": 1}'"},
    )
    eval_rouge_detok: str = field(
        default="space",
        metadata={"help": "tokenizer to undo before scoring: moses, or space for none"},
    )
    eval_rouge_detok_args: Optional[str] = field(
        default="{}", metadata={"help": "options of that tokenizer as JSON"}
    )
    eval_rouge_remove_bpe: Optional[str] = field(
        default=None,
        metadata={"help": "subwords to join before scoring", "argparse_const": "@@ "},
    )
    eval_rouge_print_samples: bool = field(
        default=False, metadata={"help": "log a summary of each batch and its reference"}
    )


@register_task("summarization", dataclass=SummarizationConfig)
class SummarizationTask(TranslationTask):
    """fairseq's translation task; with ``--eval-rouge`` validation logs mean F1 in percent.

    The names are ``rouge1``, ``rouge2``, ``rougeL`` and so on, for
    ``--best-checkpoint-metric rougeL --maximize-best-checkpoint-metric``. The numbers are those of
    ``fairseq-generate --scoring rouge`` with the same options.

    Raises:
        UsageError: wrong values of ``--eval-rouge-*`` or ``--rouge-*``, where ROUGE is asked for.
    """

    def __init__(self, cfg: Any, src_dict: Any, tgt_dict: Any):
        super().__init__(cfg, src_dict, tgt_dict)
        if not cfg.eval_rouge:
            return
        self.rouge = build_rouge(cfg)
        self._generation = _generation("--eval-rouge-args", cfg.eval_rouge_args)
        tokenizers = sorted(encoders.TOKENIZER_REGISTRY)
        if cfg.eval_rouge_detok not in tokenizers:
            allowed = f"one of {', '.join(tokenizers)}"
            raise ArgumentError("--eval-rouge-detok", cfg.eval_rouge_detok, allowed)
        options = _options("--eval-rouge-detok-args", cfg.eval_rouge_detok_args)
        self._detokenizer = encoders.build_tokenizer(
            Namespace(tokenizer=cfg.eval_rouge_detok, **options)
        )

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_rouge:
            self._generator = self.build_generator([model], Namespace(**self._generation))
        return model

    def valid_step(self, sample: Any, model: Any, criterion: Any) -> Any:
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self.cfg.eval_rouge:
            # sums, so that batches and workers can be added up
            logging_output.update(self._sums(sample, model))
        return loss, sample_size, logging_output

    def _sums(self, sample: Any, model: Any) -> Dict[str, float]:
        found = self.inference_step(self._generator, [model], sample)
        sums = {f"_rouge_{name}": 0.0 for name in self.rouge.types}
        for number, ([best, *_], target) in enumerate(zip(found, sample["target"])):
            summary = self._text(best["tokens"])
            # <<unk>>, which no unknown word of a summary matches
            reference = self._text(utils.strip_pad(target, self.tgt_dict.pad()), escape_unk=True)
            if number == 0 and self.cfg.eval_rouge_print_samples:
                logger.info("example summary: %s", summary)
                logger.info("example reference: %s", reference)
            for name, score in self.rouge.document(summary, [reference]).items():
                sums[f"_rouge_{name}"] += score.f1
        return {"_rouge_sentences": float(len(found)), **sums}

    def _text(self, tokens: Any, escape_unk: bool = False) -> str:
        text = self.tgt_dict.string(
            tokens.int().cpu(), self.cfg.eval_rouge_remove_bpe, escape_unk=escape_unk
        )
        return self._detokenizer.decode(text)

    def reduce_metrics(self, logging_outputs: Any, criterion: Any) -> None:
        super().reduce_metrics(logging_outputs, criterion)

        def total(key: str) -> float:
            return float(sum(log.get(key, 0.0) for log in logging_outputs))

        sentences = total("_rouge_sentences")
        if sentences:  # none in training
            for name in self.rouge.types:
                mean = 100 * total(f"_rouge_{name}") / sentences
                metrics.log_scalar(f"rouge{name}", mean, weight=sentences, round=2)


def _generation(flag: str, text: Optional[str]) -> Dict[str, Any]:
    """What would else be found wrong in the first validation, after an epoch of training."""
    options = _options(flag, text)
    for name, value in options.items():
        if name not in GenerationConfig.__dataclass_fields__:
            raise ArgumentError(flag, name, "options of fairseq-generate, with underscores")
        try:
            merged = OmegaConf.merge(OmegaConf.structured(GenerationConfig), {name: value})
        except OmegaConfBaseException as error:
            raise UsageError(f"{flag}: {setting_error(error)}") from error
        options[name] = merged[name]  # "5" is 5
        if name in ("beam", "nbest") and options[name] < 1:
            raise ArgumentError(f"{flag}: {name}", value, "at least 1")
    return options


def _options(flag: str, text: Optional[str]) -> Dict[str, Any]:
    try:
        options = json.loads(text or "{}")
    except json.JSONDecodeError:
        options = None
    if not isinstance(options, dict):
        raise ArgumentError(flag, text, "a JSON object")
    return options
