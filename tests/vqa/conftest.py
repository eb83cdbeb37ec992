"""Files of VQA-v2 in small: squares of one colour, and what colour they are."""

import json
from collections import Counter

import numpy as np
import pytest

from fairseq_regattn.classification.malformed import Malformed
from fairseq_regattn.vqa.questions import read_vqa

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
SIDE = 16


def entry(number, image, answer="red", question="What color is it?", ten=None):
    """A question and its annotation."""
    about = {"question_id": number, "image_id": image}
    found = {**about, "question_type": "what color", "answer_type": "other"}
    found["multiple_choice_answer"] = answer
    given = ten or [answer]
    found["answers"] = [
        {"answer": one, "answer_confidence": "yes", "answer_id": i + 1}
        for i, one in enumerate(given)
    ]
    return {**about, "question": question}, found


def write_files(folder, split, entries):
    """The two json files."""
    questions, annotations = zip(*entries)
    paths = [folder / f"{split}_{kind}.json" for kind in ("questions", "annotations")]
    paths[0].write_text(json.dumps({"questions": questions}), encoding="utf-8")
    paths[1].write_text(json.dumps({"annotations": annotations}), encoding="utf-8")
    return paths


def picture(number):
    """Bytes: a square of four by four pixels on white, somewhere; and the colour's name."""
    generator = np.random.default_rng(number)
    image = np.full((SIDE, SIDE, 3), 255, dtype=np.uint8)
    name = list(COLOURS)[number % 3]
    y, x = generator.integers(0, SIDE - 4, 2)
    image[y : y + 4, x : x + 4] = COLOURS[name]
    return image, name


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with files of three splits and ``images``."""
    folder = tmp_path_factory.mktemp("vqa")
    (folder / "images").mkdir()
    number = 0
    for split, size in (("train", 90), ("valid", 30), ("test", 36)):
        entries = []
        for image in range(number, number + size):
            pixels, colour = picture(image)
            np.savez(folder / "images" / f"COCO_{split}2014_{image:012d}.npz", x=pixels)
            asked = ("What color is it?", "Is it red?", "What is the color of the square there?")
            question = asked[image // 3 % 3]
            answer = colour if "color" in question else ("yes" if colour == "red" else "no")
            ten = [answer] * 8 + ["odd", "odd"] if image % 2 else None
            entries.append(entry(1000 + image, image, answer, question, ten))
        write_files(folder, split, entries)
        number += size
    return folder


@pytest.fixture
def read():
    """Questions of two files, the tally, and what has been found wrong."""

    def read(paths, how="error", check=True):
        tally, malformed = Counter(), Malformed(how)
        found = list(read_vqa(paths[0], paths[1], malformed, tally))
        if check:
            malformed.check()
        return found, tally, malformed.faults.messages

    return read


@pytest.fixture(scope="session")
def sources(made):
    """Arguments of ``prepare``."""
    given = []
    for split in ("train", "valid", "test"):
        paths = [made / f"{split}_{kind}.json" for kind in ("questions", "annotations")]
        given += [f"--{split}", *map(str, paths), str(made / "images")]
    return given
