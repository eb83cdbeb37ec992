"""Beams of one sentence share its memory, where they stand side by side and are equally many."""

import pytest
import torch

from fairseq_regattn.attention import Memory

SENTENCES = 4


def memory():
    """Each sentence's number, everywhere."""
    number = torch.arange(SENTENCES)
    keys = number.view(-1, 1, 1).expand(-1, 3, 2).double()
    mask = number.view(-1, 1).expand(-1, 3) % 2 == 1
    return Memory(keys, keys + 10, mask, keys + 20, keys + 30)


@pytest.mark.parametrize(
    ("sentences", "entries"),
    [
        ([0, 1, 2, 3], 4),
        ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], 4),
        ([0, 0, 1, 1], 2),  # two sentences have ended
        ([1, 1, 3, 3], 2),
        ([3, 3, 0, 0], 2),  # other orders
        ([2], 1),
        ([2, 2, 2], 1),
        ([0, 0, 1, 2, 2], 5),  # not equally many: a copy for each row
        ([0, 0, 1, 1, 0, 0], 3),  # the same sentence twice, not side by side
        ([0, 0, 0, 0, 1, 1], 6),
        ([], 0),
    ],
    ids=str,
)
def test_each_row_reads_its_sentence(sentences, entries):
    sentences = torch.tensor(sentences, dtype=torch.long)
    kept = memory().for_rows(sentences)
    assert [len(part) for part in kept] == [entries] * 5
    if entries:
        row_entries = torch.arange(len(sentences)) // (len(sentences) // entries)
        expected = [part[sentences] for part in memory()]
        assert all(torch.equal(part[row_entries], row) for part, row in zip(kept, expected))


@pytest.mark.parametrize("beams", [1, 5])
def test_nothing_is_copied_while_all_sentences_go_on(beams):
    before = memory()
    assert before.for_rows(torch.arange(SENTENCES).repeat_interleave(beams)) is before
