"""The attention matrices of a run in one file, which numpy alone can read.

A compressed ``.npz`` without pickles. For a hypothesis of sentence N, counted from 0 in the
file that was translated:

    weights_N   float32, (target tokens + 1) x (source tokens + 1), ``</s>`` last in both
    source_N    unicode, source tokens without ``</s>``
    target_N    unicode, target tokens without ``</s>``

and for all of them, in the order in which they were given:

    sentences   int64, the numbers N
    texts       unicode, the translations as people read them
    scores      float64, log2-probabilities normalised by length

    matrices = numpy.load("softmax.npz", allow_pickle=False)
    matrices["weights_0"], matrices["source_0"], matrices["target_0"]
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fairseq_regattn.analysis.alignments import Hypothesis
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.stages import partial_of

NOT_OURS = (ValueError, EOFError, zipfile.BadZipFile, KeyError, TypeError, AttributeError)
"""What reading raises: no zip, an empty file, half a zip, other arrays, a ``.npy`` (an
AttributeError before Python 3.11)."""


def write_matrices(path: str | Path, hypotheses: Iterable[Hypothesis]) -> None:
    """Write the weights and tokens of a run; the same input gives the same bytes.

    Args:
        path: file to write, complete or not at all.
        hypotheses: one a sentence, all with weights.

    Raises:
        UsageError: a hypothesis has no weights, or its sentence has another one.
    """
    path = Path(path)
    arrays: dict[str, np.ndarray] = {}
    numbers, texts, scores = [], [], []
    for hypothesis in hypotheses:
        number = hypothesis.sample_id
        if hypothesis.weights is None:
            raise UsageError(
                f"sentence {number} has no weights: generate with --print-alignment soft"
            )
        if f"weights_{number}" in arrays:
            raise UsageError(f"sentence {number} has two hypotheses: generate with --nbest 1")
        arrays[f"weights_{number}"] = hypothesis.weights.astype(np.float32)
        arrays[f"source_{number}"] = np.array(hypothesis.source, dtype=np.str_)
        arrays[f"target_{number}"] = np.array(hypothesis.target, dtype=np.str_)
        numbers.append(number)
        texts.append(hypothesis.text)
        scores.append(hypothesis.score)
    arrays["sentences"] = np.array(numbers, dtype=np.int64)
    arrays["texts"] = np.array(texts, dtype=np.str_)
    arrays["scores"] = np.array(scores, dtype=np.float64)
    with open(partial_of(path), "wb") as file:  # given a name, numpy would add .npz to it
        # numpy's stubs take the names of arrays for those of its flags
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    os.replace(partial_of(path), path)


def read_matrices(path: str | Path) -> list[Hypothesis]:
    """Read what ``write_matrices`` wrote, in the same order.

    References and scores of single tokens are not in the file: they are left empty.

    Raises:
        UsageError: it is another kind of file.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return [
                Hypothesis(
                    sample_id=int(number),
                    source=arrays[f"source_{number}"].tolist(),
                    target=arrays[f"target_{number}"].tolist(),
                    reference=None,
                    text=str(text),
                    score=float(score),
                    weights=arrays[f"weights_{number}"],
                )
                for number, text, score in zip(
                    arrays["sentences"], arrays["texts"], arrays["scores"]
                )
            ]
    except NOT_OURS as error:
        raise UsageError(f"{path} holds no attention matrices of this package: {error}") from error
