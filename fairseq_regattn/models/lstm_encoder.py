"""fairseq's LSTM encoder, answering in the coordinates of its input."""

from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F
from fairseq.models.lstm import LSTMEncoder
from torch import Tensor

from fairseq_regattn.models.packed_lstm import PackedLSTM


class EncoderOut(NamedTuple):
    """What the decoder reads; all in the coordinates of ``src_tokens`` as given."""

    values: Tensor  # bsz x src_len x units, 0 on padding
    hiddens: Tensor  # layers x bsz x units
    cells: Tensor  # layers x bsz x units
    padding_mask: Tensor  # bsz x src_len, True = padding
    sentences: Optional[Tensor] = None  # rows of a beam search, which sentence each reads


class RegAttnLSTMEncoder(LSTMEncoder):
    """LSTM encoder whose outputs line up with the source tokens, whatever the padding side.

    fairseq's own turns left padding into right padding and leaves it there, which shifts
    every alignment printed from a batch of unequal lengths, and fills padding with 1.

    Args:
        dropout_out: on the outputs; `dropout` acts between layers.
    """

    def __init__(self, dictionary, *, dropout: float, dropout_out: float, **kwargs):
        super().__init__(dictionary, dropout_out=dropout, **kwargs)
        self.dropout_out_module.p = dropout_out
        self.lstm.__class__ = PackedLSTM  # with the parameters that fairseq has drawn

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, **_unused) -> EncoderOut:
        """``bsz x src_len`` tokens, padded on either side, in any order of lengths."""
        mask = src_tokens.eq(self.padding_idx)
        # fairseq's forward refuses columns of nothing but padding (--required-seq-len-multiple)
        filled = src_tokens[:, ~mask.all(0)]
        values, hiddens, cells, _ = super().forward(filled, src_lengths, enforce_sorted=False)
        values = values.transpose(0, 1)  # bsz x longest x units, right-padded
        values = F.pad(values, (0, 0, 0, src_tokens.size(1) - filled.size(1)))
        left = mask.cumprod(1).sum(1, keepdim=True)  # padding before the sentence
        if bool(left.any()):
            length = src_tokens.size(1)
            place = (torch.arange(length, device=left.device) - left) % length
            values = values.gather(1, place.unsqueeze(2).expand_as(values))
        values = values.masked_fill(mask.unsqueeze(2), 0)
        return EncoderOut(values, hiddens, cells, mask)

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Pick rows ``new_order``: remembered here, and applied where the decoder starts.

        Beam search asks for it at every step, and copies of the sentences would cost more
        than the step.
        """
        rows = encoder_out.sentences
        return encoder_out._replace(sentences=new_order if rows is None else rows[new_order])
