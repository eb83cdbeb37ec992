"""The corpus inside the package."""

import gzip

from fairseq_regattn.quickstart import corpus


def test_packaged_corpus_is_what_its_provenance_says():
    rows = []
    with gzip.open(corpus.PACKAGED, "rt", encoding="utf-8") as lines:
        for line in lines:
            rows.append(line.rstrip("\n").split("\t"))
    assert {len(row) for row in rows} == {4}
    provenance = corpus.PACKAGED.with_name("SOURCE.txt").read_text(encoding="utf-8")
    for split in ("train", "valid", "test"):
        assert f"{sum(row[0] == split for row in rows)}  kept, {split}" in provenance
    assert f"{len(rows):,} verse pairs" in provenance
    assert max(len(side.split()) for row in rows for side in row[2:]) == 20
    assert min(len(side.split()) for row in rows for side in row[2:]) > 0
    for column in (1, 2, 3):
        assert len({row[column] for row in rows}) == len(rows)
    chapters = {
        split: {row[1].rsplit(".", 1)[0] for row in rows if row[0] == split}
        for split in ("train", "valid", "test")
    }
    assert not chapters["train"] & chapters["test"]
    assert not chapters["train"] & chapters["valid"]
    assert not chapters["valid"] & chapters["test"]
    assert corpus.PACKAGED.stat().st_size < 1_000_000
