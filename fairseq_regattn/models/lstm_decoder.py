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
from fairseq_regattn.models.stepwise import StepwiseLinear, lstm_step


def _stepwise(starts: Tensor, *weights: Tensor) -> StepwiseLinear:
    """Products that are added to ``tgt_len x bsz x out``."""
    return StepwiseLinear(starts.flatten(0, 1), [starts.size(1)] * len(starts), *weights)


class _State:
    """Where decoding stands: all that one step leaves to the next.

    Args:
        hiddens, cells: of each layer, ``rows x hidden``.
        feed: the last attentional output, ``rows x hidden``.
        memory: row r reads its entry ``r // (rows / entries)``; beams share one.
    """

    def __init__(self, hiddens: List[Tensor], cells: List[Tensor], feed: Tensor, memory: Memory):
        self.hiddens = hiddens
        self.cells = cells
        self.feed = feed
        self.memory = memory

    @classmethod
    def cached(cls, cache: Dict[str, Any]) -> "_State":
        """From what `cache` returned."""
        memory = Memory(*(cache[name] for name in Memory._fields))
        hiddens, cells = (list(cache[name].unbind(0)) for name in ("hiddens", "cells"))
        return cls(hiddens, cells, cache["feed"], memory)

    def cache(self) -> Dict[str, Tensor]:
        """As fairseq keeps it between steps."""
        hiddens, cells = torch.stack(self.hiddens), torch.stack(self.cells)
        return {"hiddens": hiddens, "cells": cells, "feed": self.feed, **self.memory._asdict()}

    def step(self, layer: int, gates: Tensor) -> Tensor:
        """Advance one layer; its new hidden state."""
        self.hiddens[layer], self.cells[layer] = lstm_step(gates, self.cells[layer])
        return self.hiddens[layer]

    def pick(self, rows: Tensor) -> "_State":
        """The state of chosen rows: exchanged, repeated, left out."""
        beams = max(1, len(self.feed) // max(1, len(self.memory.keys)))  # an empty batch too
        return _State(
            [hidden.index_select(0, rows) for hidden in self.hiddens],
            [cell.index_select(0, rows) for cell in self.cells],
            self.feed.index_select(0, rows),
            self.memory.for_rows(rows.div(beams, rounding_mode="floor")),
        )


class RegAttnLSTMDecoder(FairseqIncrementalDecoder):
    """Luong's decoder: LSTM layers, attention, ``tanh(W [context; hidden])``, output layer.

    With input feeding (the default) that attentional output joins the next step's input.
    What does not depend on the step is computed once a sentence: the embedding half of the
    first layer's gates, and the attention's keys, which all beams of a sentence share.

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
        cache = self.get_incremental_state(incremental_state, "state")
        if cache is None:
            state = self._first_state(encoder_out)
        else:
            prev_output_tokens = prev_output_tokens[:, -1:]
            state = _State.cached(cache)
        embedded = self.dropout_in_module(self.embed_tokens(prev_output_tokens.t()))
        run = self._run_fed if self.input_feeding else self._run_unfed
        features, weights = run(embedded, state)
        if incremental_state is not None:
            self.set_incremental_state(incremental_state, "state", state.cache())
        if self.narrow is not None:
            features = self.dropout_out_module(self.narrow(features))
        return features, {"attn": [weights if self.need_attn else None]}

    def _first_state(self, encoder_out: EncoderOut) -> _State:
        hiddens, cells = encoder_out.hiddens, encoder_out.cells
        if self.hidden_bridge is not None and self.cell_bridge is not None:
            hiddens, cells = self.hidden_bridge(hiddens), self.cell_bridge(cells)
        feed = hiddens.new_zeros(hiddens.size(1), self.hidden_size)
        memory = self.attention.remember(encoder_out.values, encoder_out.padding_mask)
        state = _State(list(hiddens.unbind(0)), list(cells.unbind(0)), feed, memory)
        return state if encoder_out.sentences is None else state.pick(encoder_out.sentences)

    def _run_fed(self, embedded: Tensor, state: _State) -> Tuple[Tensor, Tensor]:
        """Advance `state` over ``tgt_len x bsz x embed_dim``, step by step.

        Returns:
            Attentional outputs ``bsz x tgt_len x hidden``, weights ``bsz x tgt_len x src_len``.
        """
        # what a layer knows of its input beforehand: the first the words, the others nothing
        known = [embedded] + [embedded[..., :0]] * (len(self.layers) - 1)
        layers = [self._unroll(cell, values) for cell, values in zip(self.layers, known)]
        nothing = embedded.new_zeros(1, 1, self.hidden_size).expand(*embedded.shape[:2], -1)
        output_weight = self.output_projection.weight
        combine = _stepwise(nothing, *output_weight.tensor_split([-self.hidden_size], 1))
        outputs, weights = [], []
        for step in range(len(embedded)):
            below = state.feed
            for layer, gates in enumerate(layers):
                hidden = state.step(layer, gates(step, below, state.hiddens[layer]))
                if layer + 1 < len(layers):
                    below = self.dropout_module(hidden)
            context, attended = self.attention(hidden.unsqueeze(1), state.memory)
            combined = torch.tanh(combine(step, context.squeeze(1), hidden))
            state.feed = self.dropout_out_module(combined)
            outputs.append(state.feed)
            weights.append(attended)
        return torch.stack(outputs, 1), torch.cat(weights, 1)

    def _run_unfed(self, embedded: Tensor, state: _State) -> Tuple[Tensor, Tensor]:
        """As `_run_fed`, but layer by layer, and one attention for all steps."""
        outputs = embedded
        for layer, cell in enumerate(self.layers):
            if layer:
                outputs = self.dropout_module(outputs)
            gates = self._unroll(cell, outputs)
            outputs = torch.stack(
                [
                    state.step(layer, gates(step, state.hiddens[layer]))
                    for step in range(len(embedded))
                ]
            )
        queries = outputs.transpose(0, 1)  # bsz x tgt_len x hidden
        context, weights = self.attention(queries, state.memory)
        combined = torch.tanh(self.output_projection(torch.cat([context, queries], 2)))
        return self.dropout_out_module(combined), weights

    def _unroll(self, cell: LSTMCell, known: Tensor) -> StepwiseLinear:
        """A layer's gates; ``tgt_len x bsz x known`` of its input is known beforehand."""
        known_weight, rest = cell.weight_ih.tensor_split([known.size(2)], 1)
        starts = F.linear(known, known_weight, cell.bias_ih + cell.bias_hh)
        return _stepwise(starts, *([rest] if rest.size(1) else []), cell.weight_hh)

    def output_layer(self, features: Tensor) -> Tensor:
        """``... x out_embed_dim`` -> ``... x vocabulary``."""
        if self.output_layer_module is None:
            return F.linear(features, self.embed_tokens.weight)
        return self.output_layer_module(features)

    def reorder_incremental_state(
        self, incremental_state: Optional[Dict[str, Any]], new_order: Tensor
    ) -> None:
        """Pick beams ``new_order``."""
        cache = self.get_incremental_state(incremental_state, "state")
        if cache is not None:
            picked = _State.cached(cache).pick(new_order)
            self.set_incremental_state(incremental_state, "state", picked.cache())

    def max_positions(self) -> int:
        """Longest target in tokens."""
        return self.max_target_positions

    def make_generation_fast_(self, need_attn: bool = False, **_unused) -> None:
        """Do not collect the weights unless `need_attn`."""
        self.need_attn = bool(need_attn)
