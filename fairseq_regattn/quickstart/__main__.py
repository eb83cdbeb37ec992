"""``python -m fairseq_regattn.quickstart``; ``scripts/quickstart.sh`` sets it up and runs it."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from pathlib import Path

from omegaconf import OmegaConf

import fairseq_regattn
from fairseq_regattn.analysis.tables import duration
from fairseq_regattn.quickstart import corpus, models, report
from fairseq_regattn.quickstart.options import Options, parse
from fairseq_regattn.recipes.stages import StageError, exclusive, produce, settings_key

STAGES = 4


def main() -> int:
    options = parse(sys.argv[1:])
    # The pictures come last: do not find out after the training that they cannot be drawn.
    if importlib.util.find_spec("matplotlib") is None:
        print("quickstart: error: matplotlib is missing: pip install matplotlib", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        quickstart(options, corpus.PACKAGED)
    except KeyboardInterrupt:
        print("\nquickstart: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    except StageError as error:
        print(f"quickstart: error: {error}", file=sys.stderr)
        return 1
    return 0


def quickstart(options: Options, verses: Path, pieces: int = corpus.PIECES) -> Path:
    """Do what is missing of all stages, print the results and name the files.

    Args:
        options: from the command line.
        verses: the corpus (``fairseq_regattn/data``).
        pieces: how many subwords.

    Returns:
        The folder of the report.
    """
    began = time.monotonic()
    workspace = open_workspace(options, verses, pieces)
    with exclusive(workspace.folder) as lock:
        _announce(1, "data", f"{pieces:,} subwords of both languages, fairseq's binary format")
        made = corpus.prepare(verses, workspace.folder, workspace.binary, pieces)
        _outcome(", ".join(made), workspace.binary)

        titles = " and ".join(attention.title for attention in options.attentions)
        _announce(2, "train", f"{titles}: {workspace.max_update:,} updates")
        trained = models.train(workspace, options.attentions, lock)
        _outcome("; ".join(a.title for a in trained), workspace.folder / "models")

        _announce(3, "translate", f"the test split with beam {models.BEAM}, score it")
        translated = models.translate(workspace, options.attentions, lock)
        _outcome("; ".join(a.title for a in translated), workspace.folder / "models")

        shown = report.finished_attentions(workspace)
        folder = workspace.folder / "reports" / "+".join(a.name for a in shown)
        _announce(4, "report", "table, heat maps, page")
        drawn = produce(folder, lambda path: report.write_report(workspace, shown, path))
        _outcome(folder.name if drawn else "", folder)
    print("\n" + (folder / "results.txt").read_text(encoding="utf-8"))
    print("Written:")
    for path in [folder / "index.html", *sorted(folder.glob("*.png")), folder / "results.md"]:
        print(f"  {os.path.relpath(path)}")
    for attention in options.attentions:
        path = workspace.model(attention) / "checkpoint_best.pt"
        print(f"  {os.path.relpath(path)}  (model, {attention.title})")
    print(f"\nDone in {duration(time.monotonic() - began)}.")
    return folder


def open_workspace(options: Options, verses: Path, pieces: int) -> models.Workspace:
    """The folder for exactly these settings: others, and their results, live beside it."""
    key = settings_key(
        fairseq_regattn.__version__.encode(),
        verses.read_bytes(),
        models.CONFIG.read_bytes(),
        str(pieces).encode(),
        *(override.encode() for override in sorted(options.overrides)),
    )
    settings = OmegaConf.load(models.CONFIG)
    for override in options.overrides:
        name = override.partition("=")[0]
        if OmegaConf.select(settings, name) is None:
            raise StageError(f"{name} is not a setting of {models.CONFIG.name}")
    settings.merge_with_dotlist(list(options.overrides))
    return models.Workspace(
        folder=options.output / f"settings-{key}",
        overrides=options.overrides,
        max_update=settings.optimization.max_update,
    )


def _announce(number: int, name: str, what: str) -> None:
    print(f"[{number}/{STAGES}] {name}: {what}", flush=True)


def _outcome(made: str, place: Path) -> None:
    print(f"      {f'made {made}' if made else 'already there'}: {os.path.relpath(place)}")


if __name__ == "__main__":
    sys.exit(main())
