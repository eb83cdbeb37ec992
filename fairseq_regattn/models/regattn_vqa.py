"""``--arch regattn_vqa``: a question attends to the cells of an image."""

from typing import Any, Dict, List, Tuple

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from fairseq_regattn.attention import PlaneAttention
from fairseq_regattn.errors import UsageError
from fairseq_regattn.models.classification import HEAD, Classifier
from fairseq_regattn.models.config import VQAConfig, plane_attention_of
from fairseq_regattn.models.packed_lstm import PackedLSTM


@register_model("regattn_vqa", dataclass=VQAConfig)
class RegAttnVQAModel(Classifier):
    """An LSTM reads the question, its last state attends to the image, once.

    ``relu(W context) * relu(U question)`` is what the output layer classifies: the common baseline,
    and not the transformer of paper B (MCAN), whose continuous attention over the image this has.
    """

    arch = "regattn_vqa"
    reads = "questions"
    config = VQAConfig

    def __init__(self, cfg: Any, task: Any):
        size = cfg.hidden_size
        super().__init__(cfg, task, features=size, query_dim=size, value_dim=size)
        channels = task.grid_shape[2]
        if cfg.stem < 0:
            raise UsageError(f"--stem must be at least 0, got {cfg.stem}")
        self.stem = Stem(channels, cfg.stem) if cfg.stem else None
        self.encoder = PackedLSTM(cfg.embed_dim, size, batch_first=True)
        self.cells = nn.Linear(cfg.stem or channels, size)
        self.from_context = nn.Linear(size, size)
        self.from_question = nn.Linear(size, size)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "RegAttnVQAModel":
        """As any classifier, but layers of the image by He's rule, as a ReLU follows each.

        Raises:
            UsageError: options out of range, or data of another kind; names them.
        """
        model: Any = super().build_model(cfg, task)
        stem = [] if model.stem is None else model.stem.layers
        for layer in [*stem, model.cells]:
            if not isinstance(layer, nn.ReLU):
                nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
        return model

    @classmethod
    def check_task(cls, task: Any) -> None:
        if getattr(task, "grid_shape", None) is None:
            raise UsageError(f"--arch {cls.arch} needs --task vqa")

    @staticmethod
    def build_attention(cfg: Any, query_dim: int, value_dim: int) -> nn.Module:
        return plane_attention_of(cfg, query_dim, value_dim)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        grid: Tensor,
        classification_head_name: str = HEAD,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, List[Tensor]]]:
        """Answer questions.

        Args:
            src_tokens: ``bsz x src_len``, questions, padded on the right.
            src_lengths: ``bsz``.
            grid: ``bsz x height x width x channels``; bytes are pixels, taken from -1 to 1.

        Returns:
            Logits ``bsz x answers``, in ``attn`` the weights ``bsz x rows x columns`` of the cells
            that are attended to, and in ``moments``, of continuous attention, the density's mean
            ``bsz x 2`` and covariance ``bsz x 2 x 2`` (the first axis goes down, the second to the
            right, and the image is the unit square).
        """
        question = self.read_question(src_tokens, src_lengths)
        values = self.see(grid)
        memory = self.attention.remember_grid(values)
        weights = self.attention.weigh(question.unsqueeze(1), memory)
        moments: List[Tensor] = []
        if isinstance(self.attention, PlaneAttention):
            density = self.attention.density_of(weights, memory)
            moments = [density.mean.squeeze(1), density.covariance.squeeze(1)]
            context, weights = self.attention.read_density(density, memory)
        else:
            context, weights = self.attention.read(weights, memory)
        joined = torch.relu(self.from_context(context.squeeze(1)))
        joined = self.dropout(joined * torch.relu(self.from_question(question)))
        logits = self.classification_heads[classification_head_name](joined)
        shown = weights.view(values.shape[:3])
        return logits, {"attn": [shown], "moments": moments}

    def read_question(self, src_tokens: Tensor, src_lengths: Tensor) -> Tensor:
        """The last state, ``bsz x hidden_size``."""
        inputs = self.dropout(self.words(src_tokens))
        start = inputs.new_zeros(1, len(inputs), self.encoder.hidden_size)
        _, (last, _) = self.encode(self.encoder, inputs, src_lengths, (start, start))
        return last.squeeze(0)

    def see(self, grid: Tensor) -> Tensor:
        """What is attended to, ``bsz x rows x columns x hidden_size``."""
        pixels = not grid.is_floating_point()
        grid = grid.to(self.cells.weight)
        if pixels:
            grid = grid / 127.5 - 1
        if self.stem is not None:
            grid = self.stem(grid)
        return torch.relu(self.cells(grid))


class Stem(nn.Module):
    """Three convolutions of 3 x 3 with ReLU, of which the first two halve the image's sides."""

    def __init__(self, channels: int, size: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, size, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(size, size, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(size, size, 3, padding=1),
            nn.ReLU(),
        )

    def forward(self, grid: Tensor) -> Tensor:
        """``bsz x height x width x channels`` -> ``bsz x height / 4 x width / 4 x size``."""
        return self.layers(grid.movedim(-1, 1)).movedim(1, -1)
