"""Flags and YAML keys of the models; fairseq derives both from these dataclasses."""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import DictConfig, OmegaConf

from fairseq_regattn.attention import Attention, build_attention, build_plane_attention
from fairseq_regattn.errors import UsageError


def _flag(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass
class AttentionConfig(FairseqDataclass):
    """The attention family, for any model that attends."""

    attention: str = _flag(
        "softmax",
        "mapping from scores to weights: softmax, sparsemax, pnormmax, fusedmax, oscarmax,"
        " oscarmax_prox, entmax, continuous_softmax, continuous_sparsemax, continuous_biweight,"
        " continuous_triweight, or a name you registered",
    )
    attention_score: str = _flag(
        "general", "how states become scores: general, dot or mlp (default: general)"
    )
    attention_gamma: float = _flag(
        1.0, "> 0; strength of the whole regulariser, softmax's temperature (default: 1)"
    )
    attention_lambda: Optional[float] = _flag(
        None,
        ">= 0; strength of the structured penalty (default: 0.1 for fusedmax, 0.01 for oscarmax)",
    )
    attention_p: Optional[float] = _flag(None, "1 < p <= 2; pnormmax's exponent (default: 1.5)")
    attention_alpha: Optional[float] = _flag(None, "> 1; entmax's exponent (default: 1.5)")
    attention_swap: bool = _flag(
        False, "load a checkpoint trained with another mapping, on purpose"
    )


@dataclass
class SequenceAttentionConfig(AttentionConfig):
    """What continuous attention over sequences has beside it."""

    attention_combine: str = _flag(
        "sum",
        "continuous attention: sum (of its context and that of the discrete weights that give the"
        " density its moments) or replace (default: sum)",
    )
    attention_basis: int = _flag(
        30, "continuous attention: number of basis functions (default: 30)"
    )
    attention_basis_widths: str = _flag(
        "0.03,0.1,0.3",
        "continuous attention: their standard deviations, in lengths of the sentence, equally many"
        " functions each (default: 0.03,0.1,0.3)",
    )


@dataclass
class RegAttnLSTMConfig(SequenceAttentionConfig):
    """An LSTM encoder-decoder; names are those of fairseq's own lstm where it has them."""

    dropout: float = _flag(0.1, "dropout between LSTM layers, and elsewhere unless given below")
    encoder_embed_dim: int = _flag(512, "encoder embedding size")
    encoder_embed_path: Optional[str] = _flag(None, "pretrained encoder embeddings, text format")
    encoder_freeze_embed: bool = _flag(False, "do not train encoder embeddings")
    encoder_hidden_size: Optional[int] = _flag(
        None, "encoder state size in each direction (default: embedding size)"
    )
    encoder_layers: int = _flag(1, "encoder layers")
    encoder_bidirectional: bool = _flag(False, "read the source in both directions")
    encoder_dropout_in: Optional[float] = _flag(None, "dropout on encoder embeddings")
    encoder_dropout_out: Optional[float] = _flag(None, "dropout on encoder outputs")
    decoder_embed_dim: int = _flag(512, "decoder embedding size")
    decoder_embed_path: Optional[str] = _flag(None, "pretrained decoder embeddings, text format")
    decoder_freeze_embed: bool = _flag(False, "do not train decoder embeddings")
    decoder_hidden_size: Optional[int] = _flag(None, "decoder state size (default: embedding size)")
    decoder_layers: int = _flag(1, "decoder layers, as many as the encoder's")
    decoder_out_embed_dim: Optional[int] = _flag(
        None,
        "size before the output layer (default: decoder state size, or embedding size if shared)",
    )
    decoder_dropout_in: Optional[float] = _flag(None, "dropout on decoder embeddings")
    decoder_dropout_out: Optional[float] = _flag(None, "dropout on the attentional output")
    no_input_feeding: bool = _flag(
        False, "do not feed the attentional output to the next step's first layer"
    )
    share_decoder_input_output_embed: bool = _flag(
        False, "decoder embeddings are the output layer too"
    )
    share_all_embeddings: bool = _flag(
        False, "one embedding for encoder, decoder and output (joined dictionary)"
    )
    max_source_positions: int = _flag(100000, "longest source, in tokens")
    max_target_positions: int = _flag(100000, "longest target, in tokens")


def _instead(name: str, default: Any, of: Any = RegAttnLSTMConfig) -> Any:
    """The option `name` of another model, with another default."""
    return _flag(default, of.__dataclass_fields__[name].metadata["help"])


# An architecture is a dataclass of its own: fairseq fills in the defaults of YAML files before
# it would ask a function registered with register_model_architecture.


@dataclass
class OpenNMTConfig(RegAttnLSTMConfig):
    """OpenNMT-py's defaults of 2017, which paper A used.

    Dropout between layers and on the attentional output only.
    """

    encoder_embed_dim: int = _instead("encoder_embed_dim", 500)
    decoder_embed_dim: int = _instead("decoder_embed_dim", 500)
    encoder_layers: int = _instead("encoder_layers", 2)
    decoder_layers: int = _instead("decoder_layers", 2)
    dropout: float = _instead("dropout", 0.3)
    encoder_dropout_in: Optional[float] = _instead("encoder_dropout_in", 0.0)
    encoder_dropout_out: Optional[float] = _instead("encoder_dropout_out", 0.0)
    decoder_dropout_in: Optional[float] = _instead("decoder_dropout_in", 0.0)


@dataclass
class IWSLTConfig(RegAttnLSTMConfig):
    """For corpora of 100,000 to 300,000 sentences."""

    encoder_embed_dim: int = _instead("encoder_embed_dim", 256)
    decoder_embed_dim: int = _instead("decoder_embed_dim", 256)
    encoder_bidirectional: bool = _instead("encoder_bidirectional", True)
    dropout: float = _instead("dropout", 0.2)


@dataclass
class SmallConfig(IWSLTConfig):
    """For a few thousand sentences, on a CPU."""

    encoder_embed_dim: int = _instead("encoder_embed_dim", 192)
    decoder_embed_dim: int = _instead("decoder_embed_dim", 192)


@dataclass
class ClassifierConfig(SequenceAttentionConfig):
    """Paper B's text model, which attends to a document (its IMDB experiments)."""

    attention_score: str = _flag(
        "mlp", "how states become scores: general, dot or mlp (default: mlp)"
    )
    attention_basis: int = _flag(
        64, "continuous attention: number of basis functions (default: 64)"
    )
    attention_basis_widths: str = _flag(
        "0.1,0.5",
        "continuous attention: their standard deviations, in lengths of the text, equally many"
        " functions each (default: 0.1,0.5)",
    )
    attention_density: str = _flag(
        "moments",
        "continuous attention: moments (the density has those of discrete weights) or predicted"
        " (its parameters come from a convolution over the states, and there are no discrete"
        " weights; default: moments)",
    )
    embed_dim: int = _flag(300, "embedding size")
    embed_path: Optional[str] = _flag(
        None,
        "pretrained vectors, GloVe text, plain, gz or zip: words found there keep them, the others"
        " are trained",
    )
    dropout: float = _flag(0.0, "dropout on embeddings and on what is classified")
    hidden_size: int = _flag(128, "encoder state size in each direction")
    attention_dim: int = _flag(128, "size of the query, and of the layer of mlp scores")
    max_source_positions: int = _flag(100000, "longest text, in tokens")


@dataclass
class NLIConfig(SequenceAttentionConfig):
    """Paper A's entailment model, whose hypothesis attends to the premise."""

    attention_score: str = _instead("attention_score", "mlp", ClassifierConfig)
    embed_dim: int = _instead("embed_dim", 300, ClassifierConfig)
    embed_path: Optional[str] = _instead("embed_path", None, ClassifierConfig)
    dropout: float = _instead("dropout", 0.1, ClassifierConfig)
    hidden_size: int = _flag(100, "state size of both GRUs, and of all layers above them")
    max_source_positions: int = _instead("max_source_positions", 100000, ClassifierConfig)


@dataclass
class VQAConfig(AttentionConfig):
    """A question attends to an image, once."""

    embed_dim: int = _instead("embed_dim", 300, ClassifierConfig)
    embed_path: Optional[str] = _instead("embed_path", None, ClassifierConfig)
    dropout: float = _instead("dropout", 0.1, ClassifierConfig)
    hidden_size: int = _flag(512, "size of the question's state, and of all layers above it")
    stem: int = _flag(
        0,
        "channels of a convolutional stem, trained from pixels: four by four of them are a cell"
        " (default: 0, none: the grid is of features)",
    )
    max_source_positions: int = _flag(100000, "longest question, in tokens")


def complete(cfg: Any, kind: Any) -> DictConfig:
    """A copy of `cfg` with the defaults of `kind`; unknown keys and wrong types are refused."""
    if OmegaConf.is_config(cfg):
        given = OmegaConf.to_container(cfg)
    else:  # all of a command's flags
        known = kind.__dataclass_fields__
        given = {name: value for name, value in vars(cfg).items() if name in known}
    return OmegaConf.merge(OmegaConf.structured(kind), given)


def check_options(cfg: DictConfig) -> None:
    """Sizes and dropout.

    Raises:
        UsageError: one is out of range; names the flag and the value.
    """
    for name, value in cfg.items():
        flag = f"--{str(name).replace('_', '-')}"
        if str(name).endswith(("_dim", "_size", "_layers", "_positions")) and value < 1:
            raise UsageError(f"{flag} must be at least 1, got {value}")
        if "dropout" in str(name) and not 0 <= value < 1:
            raise UsageError(f"{flag} must be a number with 0 <= value < 1, got {value}")


def attention_of(
    cfg: Any, query_dim: int, value_dim: int, build: Callable[..., Any] = build_attention
) -> Any:
    """The attention that ``--attention`` and its parameters name.

    Args:
        build: takes the same as :func:`build_attention`, and makes it.

    Raises:
        UsageError: as for :func:`build_attention`.
    """
    return build(
        cfg.attention,
        query_dim,
        value_dim,
        cfg.attention_score,
        cfg.attention_swap,
        cfg.attention_combine,
        cfg.attention_basis,
        cfg.attention_basis_widths,
        **_parameters(cfg),
    )


def plane_attention_of(cfg: Any, query_dim: int, value_dim: int) -> Attention:
    """As :func:`attention_of`, over grids.

    Raises:
        UsageError: as for :func:`build_plane_attention`.
    """
    return build_plane_attention(
        cfg.attention,
        query_dim,
        value_dim,
        cfg.attention_score,
        cfg.attention_swap,
        **_parameters(cfg),
    )


def _parameters(cfg: Any) -> Dict[str, Optional[float]]:
    return {
        "gamma": cfg.attention_gamma,
        "lam": cfg.attention_lambda,
        "p": cfg.attention_p,
        "alpha": cfg.attention_alpha,
    }
