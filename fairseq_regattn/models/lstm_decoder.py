"""An LSTM decoder with input feeding around any attention."""

from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from fairseq.models import FairseqIncrementalDecoder
from fairseq.models.lstm import Linear, LSTMCell
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from fairseq_regattn.attention import Attention, Memory
from fairseq_regattn.models.lstm_encoder import EncoderOut


def _step(gates: Tensor, cell: Tensor) -> Tuple[Tensor, Tensor]:
    """One LSTM step from summed gates ``bsz x 4 hidden`` (torch's order: i, f, g, o)."""
    into, forget, candidate, out = gates.chunk(4, 1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(candidate)
    return torch.sigmoid(out) * torch.tanh(cell), cell


class _State:
    """Hidden and cell states of every layer, and the last attentional output."""

    def __init__(self, hiddens: List[Tensor], cells: List[Tensor], feed: Tensor):
        self.hiddens = hiddens  # layers x (bsz x hidden)
        self.cells = cells
        self.feed = feed  # bsz x hidden


class RegAttnLSTMDecoder(FairseqIncrementalDecoder):
    """Luong's decoder: LSTM layers, attention, ``tanh(W [context; hidden])``, output layer.

    With input feeding (the default) that attentional output joins the next step's input.
    What does not depend on the step is computed once a sentence: the embedding half of the
    first layer's gates, and the attention's keys.

    Args:
        embed_tokens: target embeddings, ``vocabulary x embed_dim``.
        hidden_size, num_layers: of the LSTM.
        out_embed_dim: size before the output layer.
        encoder_units: size of the encoder's states.
        attention: queried with the top layer's state.
        dropout: between layers. dropout_in: on embeddings. dropout_out: on the attentional
            output.
        input_feeding: see above.
        share_input_output_embed: use the embeddings as the output layer.
    """

    def __init__(
        self,
        dictionary,
        embed_tokens: nn.Embedding,
        hidden_size: int,
        num_layers: int,
        out_embed_dim: int,
        encoder_units: int,
        attention: Attention,
        dropout: float,
        dropout_in: float,
        dropout_out: float,
        input_feeding: bool,
        share_input_output_embed: bool,
        max_target_positions: int,
    ):
        super().__init__(dictionary)
        name = type(self).__name__
        self.dropout_module = FairseqDropout(dropout, module_name=name)
        self.dropout_in_module = FairseqDropout(dropout_in, module_name=name)
        self.dropout_out_module = FairseqDropout(dropout_out, module_name=name)
        self.embed_tokens = embed_tokens
        self.hidden_size = hidden_size
        self.input_feeding = input_feeding
        self.max_target_positions = max_target_positions
        self.need_attn = True
        self.embed_dim = embed_tokens.embedding_dim
        first = self.embed_dim + (hidden_size if input_feeding else 0)
        self.layers = nn.ModuleList(
            LSTMCell(hidden_size if layer else first, hidden_size) for layer in range(num_layers)
        )
        if encoder_units == hidden_size:
            self.hidden_bridge = self.cell_bridge = None
        else:
            self.hidden_bridge = Linear(encoder_units, hidden_size)
            self.cell_bridge = Linear(encoder_units, hidden_size)
        self.attention = attention
        self.output_projection = Linear(encoder_units + hidden_size, hidden_size, bias=False)
        self.narrow = None if out_embed_dim == hidden_size else Linear(hidden_size, out_embed_dim)
        self.output_layer_module = (
            None if share_input_output_embed else Linear(out_embed_dim, len(dictionary))
        )

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[EncoderOut] = None,
        incremental_state: Optional[Dict[str, Any]] = None,
        src_lengths: Optional[Tensor] = None,
    ) -> Tuple[Tensor, Dict[str, List[Optional[Tensor]]]]:
        """``bsz x tgt_len`` tokens -> logits ``bsz x tgt_len x vocabulary``, and attention.

        The second value is ``{"attn": [weights]}``, weights ``bsz x tgt_len x src_len`` in
        the coordinates of the source tokens, or None after ``make_generation_fast_``
        without ``need_attn``. With `incremental_state` only the last token is read.
        """
        features, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        return self.output_layer(features), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[EncoderOut] = None,
        incremental_state: Optional[Dict[str, Any]] = None,
        **_unused,
    ) -> Tuple[Tensor, Dict[str, List[Optional[Tensor]]]]:
        """As `forward`, before the output layer."""
        assert encoder_out is not None
        cached = self.get_incremental_state(incremental_state, "state")
        if cached is None:
            state = self._first_state(encoder_out)
            memory = self.attention.remember(encoder_out.values, encoder_out.padding_mask)
        else:
            prev_output_tokens = prev_output_tokens[:, -1:]
            state = _State(
                list(cached["hiddens"].unbind(0)), list(cached["cells"].unbind(0)), cached["feed"]
            )
            memory = Memory(cached["keys"], encoder_out.values, encoder_out.padding_mask)

        outputs, weights = self._run(prev_output_tokens, state, memory)

        self.set_incremental_state(
            incremental_state,
            "state",
            {
                "hiddens": torch.stack(state.hiddens),
                "cells": torch.stack(state.cells),
                "feed": state.feed,
                "keys": memory.keys,
            },
        )
        features = torch.stack(outputs, 1)  # bsz x tgt_len x hidden
        if self.narrow is not None:
            features = self.dropout_out_module(self.narrow(features))
        return features, {"attn": [torch.stack(weights, 1) if self.need_attn else None]}

    def _first_state(self, encoder_out: EncoderOut) -> _State:
        hiddens, cells = encoder_out.hiddens, encoder_out.cells
        if self.hidden_bridge is not None and self.cell_bridge is not None:
            hiddens, cells = self.hidden_bridge(hiddens), self.cell_bridge(cells)
        feed = hiddens.new_zeros(hiddens.size(1), self.hidden_size)
        return _State(list(hiddens.unbind(0)), list(cells.unbind(0)), feed)

    def _run(
        self, tokens: Tensor, state: _State, memory: Memory
    ) -> Tuple[List[Tensor], List[Tensor]]:
        """Advance `state` over ``bsz x tgt_len`` tokens; outputs and weights of each step."""
        first = self.layers[0]
        embedded = self.dropout_in_module(self.embed_tokens(tokens))
        embedded_gates = F.linear(  # bsz x tgt_len x 4 hidden
            embedded, first.weight_ih[:, : self.embed_dim], first.bias_ih + first.bias_hh
        ).unbind(1)
        recurrent = [  # what multiplies [input; hidden] at every step
            torch.cat(
                [cell.weight_ih[:, self.embed_dim if cell is first else 0 :], cell.weight_hh], 1
            ).t()
            for cell in self.layers
        ]
        biases = [cell.bias_ih + cell.bias_hh for cell in self.layers]
        outputs, weights = [], []
        for gates in embedded_gates:
            below = state.feed if self.input_feeding else None
            for layer in range(len(self.layers)):
                hidden = state.hiddens[layer]
                both = hidden if below is None else torch.cat([below, hidden], 1)
                start = biases[layer] if layer else gates
                hidden, cell = _step(torch.addmm(start, both, recurrent[layer]), state.cells[layer])
                state.hiddens[layer], state.cells[layer] = hidden, cell
                if layer + 1 < len(self.layers):
                    below = self.dropout_module(hidden)
            context, attended = self.attention(hidden, memory)
            combined = torch.tanh(self.output_projection(torch.cat([context, hidden], 1)))
            state.feed = self.dropout_out_module(combined)
            outputs.append(state.feed)
            weights.append(attended)
        return outputs, weights

    def output_layer(self, features: Tensor) -> Tensor:
        """``... x out_embed_dim`` -> ``... x vocabulary``."""
        if self.output_layer_module is None:
            return F.linear(features, self.embed_tokens.weight)
        return self.output_layer_module(features)

    def reorder_incremental_state(
        self, incremental_state: Optional[Dict[str, Any]], new_order: Tensor
    ) -> None:
        """Pick beams ``new_order``."""
        cached = self.get_incremental_state(incremental_state, "state")
        if cached is not None:
            by_layer = ("hiddens", "cells")
            picked = {
                name: value.index_select(1 if name in by_layer else 0, new_order)
                for name, value in cached.items()
            }
            self.set_incremental_state(incremental_state, "state", picked)

    def max_positions(self) -> int:
        """Longest target in tokens."""
        return self.max_target_positions

    def make_generation_fast_(self, need_attn: bool = False, **_unused) -> None:
        """Do not collect the weights unless `need_attn`."""
        self.need_attn = bool(need_attn)
