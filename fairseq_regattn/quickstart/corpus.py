"""The corpus inside the package, as the folder of plain text that recipes take."""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path

import fairseq_regattn
from fairseq_regattn.recipes.stages import produce, settings_key

PACKAGED = Path(fairseq_regattn.__file__).parent / "data" / "verses.en-es.tsv.gz"


def extract(corpus: Path, output: Path) -> Path:
    """Unpack a corpus, unless it is there.

    Args:
        corpus: gzipped TSV of split, reference, English, Spanish.
        output: gets a folder with a file a split and language, and one with the names of verses.

    Returns:
        The folder.
    """
    folder = output / f"verses-{settings_key(corpus.read_bytes())}"
    produce(folder, lambda path: _unpack(corpus, path))
    return folder


def _unpack(corpus: Path, folder: Path) -> None:
    files: dict[str, list[str]] = defaultdict(list)
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        for line in lines:
            split, name, english, spanish = line.rstrip("\n").split("\t")
            files[f"{split}.names"].append(name)
            files[f"{split}.en"].append(english)
            files[f"{split}.es"].append(spanish)
    folder.mkdir()
    for name, content in files.items():
        text = "".join(f"{line}\n" for line in content)
        (folder / name).write_text(text, encoding="utf-8")
