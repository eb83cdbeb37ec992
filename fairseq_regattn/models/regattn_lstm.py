"""``--arch regattn_lstm``: an LSTM encoder-decoder with any attention mapping."""

from typing import Any, Dict, Optional

from fairseq import utils
from fairseq.models import (
    FairseqEncoderDecoderModel,
    register_model,
)
from fairseq.models.lstm import Embedding
from omegaconf import DictConfig
from torch import nn

from fairseq_regattn.errors import UsageError
from fairseq_regattn.models.config import (
    IWSLTConfig,
    OpenNMTConfig,
    RegAttnLSTMConfig,
    SmallConfig,
    attention_of,
    check_options,
    complete,
)
from fairseq_regattn.models.lstm_decoder import RegAttnLSTMDecoder
from fairseq_regattn.models.lstm_encoder import RegAttnLSTMEncoder


@register_model("regattn_lstm", dataclass=RegAttnLSTMConfig)
class RegAttnLSTMModel(FairseqEncoderDecoderModel):
    """LSTM encoder, LSTM decoder with input feeding, ``--attention`` between them."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "RegAttnLSTMModel":
        """Build from flags or YAML.

        Raises:
            UsageError: options that contradict each other; names both with their values.
        """
        cfg = _complete(cfg)
        _check(cfg, task)
        source = _embedding(
            cfg.encoder_embed_path,
            task.source_dictionary,
            cfg.encoder_embed_dim,
            "encoder_embed_path",
        )
        target = (
            source
            if cfg.share_all_embeddings
            else _embedding(
                cfg.decoder_embed_path,
                task.target_dictionary,
                cfg.decoder_embed_dim,
                "decoder_embed_path",
            )
        )
        source.weight.requires_grad = not cfg.encoder_freeze_embed
        if not cfg.share_all_embeddings or cfg.decoder_freeze_embed:
            target.weight.requires_grad = not cfg.decoder_freeze_embed
        encoder = RegAttnLSTMEncoder(
            task.source_dictionary,
            embed_dim=cfg.encoder_embed_dim,
            hidden_size=cfg.encoder_hidden_size,
            num_layers=cfg.encoder_layers,
            bidirectional=cfg.encoder_bidirectional,
            dropout=cfg.dropout,
            dropout_in=cfg.encoder_dropout_in,
            dropout_out=cfg.encoder_dropout_out,
            pretrained_embed=source,
            max_source_positions=cfg.max_source_positions,
        )
        attention = attention_of(cfg, cfg.decoder_hidden_size, encoder.output_units)
        for parameter in attention.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)  # as every other weight here
        decoder = RegAttnLSTMDecoder(
            task.target_dictionary,
            target,
            hidden_size=cfg.decoder_hidden_size,
            num_layers=cfg.decoder_layers,
            out_embed_dim=cfg.decoder_out_embed_dim,
            encoder_units=encoder.output_units,
            attention=attention,
            dropout=cfg.dropout,
            dropout_in=cfg.decoder_dropout_in,
            dropout_out=cfg.decoder_dropout_out,
            input_feeding=not cfg.no_input_feeding,
            share_input_output_embed=cfg.share_decoder_input_output_embed,
            max_target_positions=cfg.max_target_positions,
        )
        return cls(encoder, decoder)


def _complete(cfg: Any) -> DictConfig:
    """A copy in which nothing is missing."""
    full = complete(cfg, RegAttnLSTMConfig)
    defaults: Dict[str, Any] = {
        "encoder_hidden_size": full.encoder_embed_dim,
        "decoder_hidden_size": full.decoder_embed_dim,
        "encoder_dropout_in": full.dropout,
        "encoder_dropout_out": full.dropout,
        "decoder_dropout_in": full.dropout,
        "decoder_dropout_out": full.dropout,
    }
    for name, value in defaults.items():
        if full[name] is None:
            full[name] = value
    if full.share_all_embeddings:
        full.share_decoder_input_output_embed = True
    if full.decoder_out_embed_dim is None:
        shared = full.share_decoder_input_output_embed
        full.decoder_out_embed_dim = full.decoder_embed_dim if shared else full.decoder_hidden_size
    return full


def _check(cfg: DictConfig, task: Any) -> None:
    """Refuse options that are out of range or contradict each other."""
    check_options(cfg)

    def same(first: str, second: str, why: str) -> None:
        if cfg[first] != cfg[second]:
            flags = [f"--{name.replace('_', '-')} {cfg[name]}" for name in (first, second)]
            raise UsageError(f"{why}: {flags[0]} and {flags[1]} must be equal")

    same("encoder_layers", "decoder_layers", "each decoder layer starts from an encoder layer")
    if cfg.share_all_embeddings:
        if task.source_dictionary != task.target_dictionary:
            raise UsageError(
                "--share-all-embeddings needs one dictionary for both sides:"
                " fairseq-preprocess --joined-dictionary"
            )
        same("encoder_embed_dim", "decoder_embed_dim", "--share-all-embeddings")
        if cfg.decoder_embed_path is not None:
            same("encoder_embed_path", "decoder_embed_path", "--share-all-embeddings")
    if cfg.share_decoder_input_output_embed:
        same("decoder_embed_dim", "decoder_out_embed_dim", "shared decoder embeddings")


def _embedding(path: Optional[str], dictionary: Any, dim: int, option: str) -> nn.Embedding:
    """Embeddings ``vocabulary x dim``, read from `path` where it is given."""
    embedding = Embedding(len(dictionary), dim, dictionary.pad())
    if path is None:
        return embedding
    vectors = utils.parse_embedding(path)
    found = len(next(iter(vectors.values()))) if vectors else 0
    if found != dim:
        raise UsageError(
            f"--{option.replace('_', '-')} {path} holds vectors of size {found}, and"
            f" --{option.replace('_path', '_dim').replace('_', '-')} is {dim}"
        )
    utils.print_embed_overlap(vectors, dictionary)
    return utils.load_embedding(vectors, dictionary, embedding)


@register_model("regattn_lstm_opennmt", dataclass=OpenNMTConfig)
class OpenNMTModel(RegAttnLSTMModel):
    """The base model with the defaults of OpenNMT-py."""


@register_model("regattn_lstm_iwslt", dataclass=IWSLTConfig)
class IWSLTModel(RegAttnLSTMModel):
    """The base model for a corpus of the size of IWSLT's."""


@register_model("regattn_lstm_small", dataclass=SmallConfig)
class SmallModel(RegAttnLSTMModel):
    """The base model for a CPU."""
