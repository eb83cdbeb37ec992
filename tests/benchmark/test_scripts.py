"""The benchmarks of the mappings run, and record what they print."""

import json

import pytest

from fairseq_regattn.mappings import MAPPINGS

pytestmark = pytest.mark.slow


@pytest.fixture
def run_script(run_python, package_dir, tmp_path):
    """Run a benchmark for one round; its output and its lines of JSON."""

    def run(name, *arguments):
        root = package_dir.parent
        script = root / "scripts" / "benchmark" / name
        common = ("--rounds", "1", "--budget", "0.01", "--json", "figures.json")
        result = run_python(script, *arguments, *common, path=[root])
        lines = (tmp_path / "figures.json").read_text(encoding="utf-8").splitlines()
        return result.stdout, [json.loads(line) for line in lines]

    return run


def test_mappings(run_script):
    printed, tables = run_script("mappings.py", "--shape", "4x5", "64x50")
    assert [table["title"] for table in tables] == [
        "forward, 4x5, float32",
        "forward+backward, 4x5, float32",
        "forward, 64x50, float32",
        "forward+backward, 64x50, float32",
        "targets",
    ]
    for table in tables[:4]:
        assert {*MAPPINGS, "torch.softmax", "fusedmax, row by row"} <= set(table["rows"])
        assert all(len(row["seconds"]) == 1 for row in table["rows"].values())
    assert all(
        f"{value:.2f}   {relation}" in printed for _, value, relation, _ in tables[4]["rows"]
    )
    assert any(name.startswith("fusedmax / torch.softmax") for name, *_ in tables[4]["rows"])


def test_scaling(run_script):
    _, tables = run_script(
        "scaling.py", "--lengths", "10", "3000", "6000", "--batches", "1000", "2000"
    )
    lengths, batches, hard, targets = tables
    assert set(lengths["rows"]) == {*MAPPINGS, "fusedmax, ramp", "torch.softmax"}
    assert set(batches["rows"]) == set(lengths["rows"])
    assert lengths["fitted"] == [3000, 6000]
    assert set(lengths["rows"]["fusedmax"]["seconds"]) == {"10", "3000", "6000"}
    assert "Condat, ramp" in hard["rows"]
    assert len(targets["rows"]) == 4


def test_continuous(run_script):
    printed, tables = run_script("continuous.py", "--lengths", "20", "5", "--batch", "2")
    *contestants, targets = tables
    assert [table["title"] for table in contestants] == [
        f"{name}: 2 sequences by length"
        for name in (
            "discrete softmax",
            "continuous softmax, B given",
            "continuous sparsemax, B given",
            "B, G given",
            "G, once a length",
        )
    ]
    assert all(list(table["rows"]) == ["5", "20"] for table in contestants)
    assert [name for name, *_ in targets["rows"]] == [
        f"continuous {name}, B given: 20 / 5 positions" for name in ("softmax", "sparsemax")
    ]
    assert all(f"{value:.2f}   <=" in printed for _, value, *_ in targets["rows"])


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("mappings.py", "--shape 64", "--shape: must look like 64x50, both > 0, got '64'"),
        ("mappings.py", "--shape 4x5 0x5", "--shape: must look like 64x50, both > 0, got '0x5'"),
        ("mappings.py", "--budget -1", "--budget: must be a number > 0, got '-1'"),
        ("mappings.py", "--device nonsense", "--device: 'nonsense' cannot be used"),
        ("scaling.py", "--lengths 10", "--lengths: a fit takes two sizes of at least 3,000"),
        ("continuous.py", "--lengths 50 50", "--lengths: a comparison takes two"),
        ("continuous.py", "--lengths 50 x", "--lengths: must be an integer > 0, got 'x'"),
        ("scaling.py", "--rounds 0", "--rounds: must be an integer > 0, got '0'"),
        ("training.py", "--arch nonsense", "--arch: invalid choice: 'nonsense'"),
        ("decoding.py", "--batch 0", "--batch: must be an integer > 0, got '0'"),
        ("decoding.py", "--json /nonexistent/x.json", "--json: cannot write '/nonexistent/x.json'"),
    ],
)
def test_wrong_arguments(run_python, package_dir, script, arguments, message):
    """One line that names the argument, the value and what is allowed, before any work."""
    root = package_dir.parent
    script = root / "scripts" / "benchmark" / script
    result = run_python(script, *arguments.split(), path=[root], expected=2)
    assert message in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
