"""What the models that classify texts, and questions about images, have in common."""

import hashlib
from typing import Any, Dict, List, Optional, Tuple

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from fairseq_regattn.errors import UsageError
from fairseq_regattn.models.config import attention_of, check_options, complete
from fairseq_regattn.models.words import Words

HEAD = "sentence_classification_head"
"""How fairseq's criterion ``sentence_prediction`` calls the output layer."""


class Classifier(BaseFairseqModel):
    """Embeddings, attention and the output layer; a model of its own adds what attends to what.

    What its words and labels are travels with the weights, in the buffer `data_version`, so that
    a checkpoint is not silently used with data whose numbers mean others. One without is loaded.

    Args:
        cfg: complete options.
        task: with a dictionary, and `labels` in the order of the classes.
        features: size of what is classified.
        query_dim, value_dim: of the attention.
    """

    arch = ""
    config: Any = None
    """The dataclass of its options."""

    def __init__(self, cfg: Any, task: Any, features: int, query_dim: int, value_dim: int):
        super().__init__()
        dictionary = task.source_dictionary
        pretrained = cfg.embed_path is not None
        self.words = Words(len(dictionary), cfg.embed_dim, dictionary.pad(), pretrained)
        self.attention = self.build_attention(cfg, query_dim, value_dim)
        self.dropout = nn.Dropout(cfg.dropout)
        self.classification_heads = nn.ModuleDict({HEAD: nn.Linear(features, len(task.labels))})
        self._max_positions = cfg.max_source_positions
        names = "\n".join([*dictionary.symbols, *task.labels]).encode()
        digest = list(hashlib.sha256(names).digest())
        self.register_buffer("data_version", torch.tensor(digest, dtype=torch.long))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        key = prefix + "data_version"
        trained = state_dict.get(key, self.data_version)
        if trained.tolist() != self.data_version.tolist():
            raise UsageError("the checkpoint was trained on data with other words or labels")
        super()._load_from_state_dict({**state_dict, key: trained}, prefix, *rest)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "Classifier":
        """Build from flags or YAML, and draw the parameters.

        Glorot's uniform distribution for matrices, zero for biases. Pretrained vectors are the
        task's to set, as a checkpoint brings its own.

        Raises:
            UsageError: options out of range, or data of another kind; names them.
        """
        cfg = complete(cfg, cls.config)
        check_options(cfg)
        cls.check_task(task)
        model = cls(cfg, task)  # type: ignore[call-arg]  # a model's own
        for module in model.modules():
            if not isinstance(module, Words):
                _draw(module)
        return model

    @classmethod
    def check_task(cls, task: Any) -> None:
        """
        Raises:
            UsageError: the model is for another task.
        """
        raise NotImplementedError

    @staticmethod
    def build_attention(cfg: Any, query_dim: int, value_dim: int) -> nn.Module:
        """What the model attends with."""
        return attention_of(cfg, query_dim, value_dim)

    def encode(
        self,
        rnn: nn.RNNBase,
        inputs: Tensor,
        lengths: Tensor,
        start: Any,
    ) -> Tuple[Tensor, Any]:
        """States ``bsz x length x units`` of a recurrent layer from `start`, and its last one.

        States are 0 on padding.
        """
        packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, last = rnn(packed, start)
        padded, _ = pad_packed_sequence(states, batch_first=True, total_length=inputs.size(1))
        return padded, last

    def max_positions(self) -> int:
        """Longest text, in tokens."""
        return self._max_positions


class AttentionClassifier(Classifier):
    """Attends to a text; for the task ``text_classification``."""

    reads = "texts"
    """What it classifies: texts, pairs of them, or questions about images."""

    @classmethod
    def check_task(cls, task: Any) -> None:
        pairs = getattr(task, "pairs", None)
        if pairs is None:
            raise UsageError(f"--arch {cls.arch} needs --task text_classification")
        if pairs != (cls.reads == "pairs"):
            there, wanted = ("two inputs", "one") if pairs else ("one input", "two")
            raise UsageError(f"the data have {there}, and --arch {cls.arch} reads {wanted}")

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        pair_tokens: Optional[Tensor] = None,
        pair_lengths: Optional[Tensor] = None,
        classification_head_name: str = HEAD,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, List[Tensor]]]:
        """Classify texts, or pairs.

        Args:
            src_tokens: ``bsz x src_len``, what is attended to, padded on the right.
            src_lengths: ``bsz``.
            pair_tokens, pair_lengths: the second text of each pair.

        Returns:
            Logits ``bsz x classes``, and in ``attn`` the weights ``bsz x src_len``.
        """
        features, weights = self.attend(src_tokens, src_lengths, pair_tokens, pair_lengths)
        logits = self.classification_heads[classification_head_name](features)
        return logits, {"attn": [weights]}

    def attend(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        pair_tokens: Optional[Tensor],
        pair_lengths: Optional[Tensor],
    ) -> Tuple[Tensor, Tensor]:
        """Features ``bsz x features`` and weights ``bsz x src_len``."""
        raise NotImplementedError

    def read(self, query: Tensor, values: Tensor, lengths: Tensor) -> Tuple[Tensor, Tensor]:
        """Attend once: context ``bsz x value_dim`` and weights ``bsz x length``.

        Args:
            query: ``bsz x query_dim``.
            values: ``bsz x length x value_dim``.
        """
        memory = self.attention.remember(values, self.padding_mask(values, lengths))
        context, weights = self.attention(query.unsqueeze(1), memory)
        return context.squeeze(1), weights.squeeze(1)

    @staticmethod
    def padding_mask(values: Tensor, lengths: Tensor) -> Tensor:
        """``bsz x length`` for values ``bsz x length x dim``, True = ignore."""
        places = torch.arange(values.size(1), device=values.device)
        return places >= lengths.to(values.device).unsqueeze(1)


def _draw(module: nn.Module) -> None:
    """Parameters of a module itself; each gate of a recurrent layer is a matrix of its own."""
    hidden = module.hidden_size if isinstance(module, nn.RNNBase) else None
    for parameter in module.parameters(recurse=False):
        if parameter.dim() == 1:
            nn.init.zeros_(parameter)
        else:
            for part in parameter.split(hidden or len(parameter)):
                nn.init.xavier_uniform_(part)
