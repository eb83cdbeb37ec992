#!/usr/bin/env python3
"""Make VQA-v2's files of easy-VQA: coloured shapes, and questions about them.

    pip install easy-vqa matplotlib      # or fairseq-regattn[easy-vqa]
    python scripts/prepare/easy_vqa.py OUT [--valid 0.1]

OUT gets ``{train,valid,test}_questions.json``, ``{train,valid,test}_annotations.json`` and
``images/``, an ``.npz`` of 64 x 64 x 3 bytes an image, numbered as in the package; images of its
test set have 10,000 added. The validation set are all questions about some images of the training
set, chosen by a hash of the image's number. Nothing is there under its name until it is complete.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

TEST = 10_000
"""Added to the numbers of the images of the test set."""

Asked = tuple[str, str, int]
"""Question, answer, image."""


def question_type(question: str, answer: str) -> tuple[str, str]:
    """The template's kind, and VQA's kind of answer."""
    if answer in ("yes", "no"):
        negated = {"no", "not"} & set(question.split())
        return ("yes/no, negated" if negated else "yes/no"), "yes/no"
    return ("colour" if "color" in question.split() else "shape"), "other"


def is_valid(image: int, share: float) -> bool:
    """Whether an image is of the validation set."""
    return int(hashlib.sha256(str(image).encode()).hexdigest()[:8], 16) < share * 2**32


def files(split: str, asked: Sequence[Asked], first: int) -> dict[str, str]:
    """The two files of a split; questions are numbered from `first`."""
    questions, annotations = [], []
    for number, (question, answer, image) in enumerate(asked, start=first):
        kind, answer_type = question_type(question, answer)
        about = {"question_id": number, "image_id": image}
        questions.append({**about, "question": question})
        annotations.append(
            {
                **about,
                "question_type": kind,
                "answer_type": answer_type,
                "multiple_choice_answer": answer,
                "answers": [{"answer": answer, "answer_id": 1}],
            }
        )
    return {
        f"{split}_questions.json": json.dumps({"questions": questions}),
        f"{split}_annotations.json": json.dumps({"annotations": annotations}),
    }


def write(path: Path, image: np.ndarray) -> None:
    """Whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        np.savez_compressed(file, x=image)
    partial.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder that gets it")
    parser.add_argument(
        "--valid", type=float, default=0.1, help="share of the images (default: %(default)s)"
    )
    args = parser.parse_args()
    if not 0 < args.valid < 1:
        raise ValueError(f"--valid must be between 0 and 1, got {args.valid}")
    try:
        sys.path.remove(str(Path(__file__).resolve().parent))  # the package, not this file
        import easy_vqa
        from matplotlib.image import imread
    except ImportError as error:
        raise ValueError(f"{error.name} is missing: pip install easy-vqa matplotlib") from None
    train = list(zip(*easy_vqa.get_train_questions()))
    test = zip(*easy_vqa.get_test_questions())
    splits: dict[str, list[Asked]] = {
        "train": [one for one in train if not is_valid(one[2], args.valid)],
        "valid": [one for one in train if is_valid(one[2], args.valid)],
        "test": [(question, answer, image + TEST) for question, answer, image in test],
    }
    paths = easy_vqa.get_train_image_paths()
    paths.update({n + TEST: path for n, path in easy_vqa.get_test_image_paths().items()})
    (args.out / "images").mkdir(parents=True, exist_ok=True)
    for number, path in sorted(paths.items()):
        pixels = np.round(255 * imread(path)[..., :3]).astype(np.uint8)
        write(args.out / "images" / f"{number}.npz", pixels)
    first, texts = 1, {}
    for split, asked in splits.items():
        texts.update(files(split, asked, first))
        first += len(asked)
        images = len({image for _, _, image in asked})
        print(f"{split}: {len(asked):,} questions about {images:,} images")
        for kind, count in Counter(question_type(*one[:2])[0] for one in asked).most_common():
            print(f"{count:8,d}  {kind}")
    for name, text in texts.items():
        (args.out / f"{name}.partial").write_text(text, encoding="utf-8")
    for name in texts:
        (args.out / f"{name}.partial").replace(args.out / name)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        print(f"easy_vqa.py: error: {error}", file=sys.stderr)
        sys.exit(1)
