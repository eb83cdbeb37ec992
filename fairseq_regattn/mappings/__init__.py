"""From attention scores to probabilities, with any of several regularisers.

Every function is ``name(scores, dim=-1, *, padding_mask=None, gamma=1.0, ...)``; every one
has a module twin and, where it has a regulariser, a Fenchel-Young loss. "Paper A" in the
docstrings is V. Niculae and M. Blondel, A Regularized Framework for Sparse and Structured Neural
Attention, NIPS 2017, arXiv 1705.07704 v3.
"""

from fairseq_regattn.mappings._entmax import Entmax, entmax, entmax_loss
from fairseq_regattn.mappings._fusedmax import Fusedmax, fusedmax, fusedmax_loss
from fairseq_regattn.mappings._general import general_mapping
from fairseq_regattn.mappings._oscarmax import Oscarmax, oscarmax, oscarmax_loss
from fairseq_regattn.mappings._oscarmax_prox import OscarmaxProx, oscarmax_prox
from fairseq_regattn.mappings._pnormmax import PNormMax, pnormmax, pnormmax_loss
from fairseq_regattn.mappings._softmax import Softmax, softmax, softmax_loss
from fairseq_regattn.mappings._sparsemax import Sparsemax, sparsemax, sparsemax_loss
from fairseq_regattn.mappings.registry import MAPPINGS, fenchel_young_loss, regularized_max

__all__ = [
    "MAPPINGS",
    "Entmax",
    "Fusedmax",
    "Oscarmax",
    "OscarmaxProx",
    "PNormMax",
    "Softmax",
    "Sparsemax",
    "entmax",
    "entmax_loss",
    "fenchel_young_loss",
    "fusedmax",
    "fusedmax_loss",
    "general_mapping",
    "oscarmax",
    "oscarmax_loss",
    "oscarmax_prox",
    "pnormmax",
    "pnormmax_loss",
    "regularized_max",
    "softmax",
    "softmax_loss",
    "sparsemax",
    "sparsemax_loss",
]
