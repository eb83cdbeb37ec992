"""``python -m fairseq_regattn.scoring.rouge``."""

import gzip
import json
import re
import signal
import subprocess
import sys

import pytest

from fairseq_regattn.scoring.rouge import Limit, Rouge
from fairseq_regattn.scoring.rouge import __main__ as command
from fairseq_regattn.scoring.rouge.__main__ import main

HYPOTHESES = ["the cats sat", "a dog barked", "", "police killed the gunman", "."]
OTHER = ["a cat", "the dog barked at night", "rain", "the gunman killed police", "."]
REFERENCES = [
    ["the cat sat on the mat", "dogs bark", "rain in spain", "police killed the gunman", "one"],
    ["cat on a mat", "the dog barked", "日本語", "the gunman was shot", "two"],
]
PROGRAM = "python -m fairseq_regattn.scoring.rouge"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two systems, two references."""
    monkeypatch.chdir(tmp_path)
    names = ("made", "other", "first", "second")
    for name, lines in zip(names, (HYPOTHESES, OTHER, *REFERENCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(capsys):
    """What the command prints, which must succeed."""

    def of(*arguments):
        assert main(arguments) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out

    return of


@pytest.fixture
def refused(capsys):
    """The one line that the command says when it fails."""

    def of(*arguments):
        try:
            status = main(arguments)
        except SystemExit as left:  # argparse's way
            status = left.code
        printed = capsys.readouterr()
        assert status == 2
        assert printed.out == ""
        assert printed.err.startswith(f"{PROGRAM}: error: ")
        assert printed.err.count("\n") == 1
        return printed.err

    return of


def as_json(averages):
    return {
        kind: {measure: number._asdict() for measure, number in average._asdict().items()}
        for kind, average in averages.items()
    }


def numbers(rouge, hypotheses):
    """Both kinds, of documents with two references."""
    system = rouge.system(hypotheses, list(zip(*REFERENCES)))
    return {"means": as_json(system.summary()), "rouge155": as_json(system.averages())}


def averages(rouge, hypotheses, names, references):
    return as_json(rouge.system(hypotheses, list(zip(*references)), names).averages())


def test_the_table(files, run):
    (files / "made").write_text("the cat\n")
    (files / "first").write_text("the cat sat on the mat\n")
    table, last = run("made", "first").split("\n\n")
    hundred = "100.00 (100.00-100.00)"
    first, rule, *rows = table.splitlines()
    assert first.split() == ["system", "ROUGE", "recall", "precision", "F1"]
    assert set(rule) == {"-", " "}
    assert [row.split(maxsplit=2) for row in rows] == [
        ["made", "1", f"33.33 (33.33-33.33)  {hundred}  50.00 (50.00-50.00)"],
        ["made", "2", f"20.00 (20.00-20.00)  {hundred}  33.33 (33.33-33.33)"],
        ["made", "L", f"33.33 (33.33-33.33)  {hundred}  50.00 (50.00-50.00)"],
    ]
    about, which, silent, silent_references, signature = last.splitlines()
    assert about == "percent, with 95 % intervals; 1 documents"
    assert which.startswith("averages of ROUGE-1.5.5")
    assert silent == "hypotheses without tokens, which score 0: none"
    assert silent_references == "references without tokens: none"
    assert signature == Rouge().signature([1])


@pytest.mark.parametrize(
    ("arguments", "rouge"),
    [
        ([], Rouge()),
        (["--stem", "--types", "3,Lsum,W-1.2"], Rouge(("3", "Lsum", "W-1.2"), stem=True)),
        (["--bytes", "7"], Rouge(limit=Limit("bytes", 7))),
        (["--words", "2", "--several", "best"], Rouge(limit=Limit("words", 2), several="best")),
        (["--several", "jackknife"], Rouge(several="jackknife")),
    ],
)
def test_all_numbers_as_json(files, run, arguments, rouge):
    result = json.loads(run("made", "first", "second", *arguments, "--json", "-"))
    assert result == {
        "signature": rouge.signature([2]),
        "documents": 5,
        "references_without_tokens": 1,
        "compared_with": None,
        "printed": "rouge155",
        "systems": {"made": {"empty": 1, "without_tokens": 2, **numbers(rouge, HYPOTHESES)}},
    }
    table = run("made", *arguments, "first", "second", "--json", "folder/x.json")
    assert json.loads((files / "folder" / "x.json").read_bytes()) == result
    made = result["systems"]["made"]
    for kind, scores in made["rouge155"].items():
        assert scores["recall"]["low"] < scores["recall"]["value"] < scores["recall"]["high"]
        percent = [{key: f"{100 * n:.2f}" for key, n in found.items()} for found in scores.values()]
        cells = [f"{found['value']} ({found['low']}-{found['high']})" for found in percent]
        assert ["made", kind, *cells] in [re.split("  +", line) for line in table.splitlines()]
    assert "2 of made (1 empty)\nreferences without tokens: 1\n" in table
    assert [path.name for path in (files / "folder").iterdir()] == ["x.json"]
    assert rouge.signature([2]) in table


def test_comparison_with_another_system(files, run):
    arguments = ("made", "first", "second", "--compare", "other", "--types", "1,L")
    result = json.loads(run(*arguments, "--json", "-"))
    rouge = Rouge(("1", "L"))
    references = list(zip(*REFERENCES))
    made, other = (rouge.system(texts, references) for texts in (HYPOTHESES, OTHER))
    assert result["compared_with"] == "other"
    assert list(result["systems"]) == ["made", "other"]
    assert result["systems"]["other"].items() >= numbers(rouge, OTHER).items()
    assert "p" not in result["systems"]["other"]
    for measure in ("recall", "precision", "f1"):
        expected = made.p_values(other, measure)
        for kind in ("1", "L"):
            assert result["systems"]["made"]["p"][kind][measure] == expected[kind]
    table, tests, _ = run(*arguments).split("\n\n")
    assert [row.split()[:2] for row in table.splitlines()[2:]] == [
        ["made", "1"],
        ["made", "L"],
        ["other", "1"],
        ["other", "L"],
    ]
    header, _, *rows = (row.split() for row in tests.splitlines())
    assert header == ["p", "against", "other", "ROUGE", "recall", "precision", "F1"]
    assert rows == [
        ["made", kind, *(f"{made.p_values(other, m)[kind]:.4f}" for m in command.MEASURES)]
        for kind in ("1", "L")
    ]


def test_output_of_fairseq_generate(files, run):
    def generated(texts):
        numbered = list(enumerate(zip(REFERENCES[0], texts)))
        return "".join(
            f"T-{n}\t{t}\nH-{n}\t-1\tx\nD-{n}\t-1\t{d}\n" for n, (t, d) in numbered[::-1]
        )

    (files / "out").write_text(generated(HYPOTHESES))
    (files / "out2.gz").write_bytes(gzip.compress(generated(OTHER).encode()))
    by_lines = json.loads(run("made", "first", "--compare", "other", "--json", "-"))
    found = json.loads(run("--generate", "out", "--compare", "out2.gz", "--json", "-"))
    assert list(found["systems"]) == ["out", "out2.gz"]
    assert list(found["systems"].values()) == list(by_lines["systems"].values())
    assert found["signature"] == by_lines["signature"]


def test_folders_of_duc(files, run):
    """Four references of eleven documents, which do not sort as their numbers from 1 would."""
    documents = [f"D300{number}.P.10.T.X{number * 7 % 11}" for number in range(10, 21)]
    first, second, third, fourth, made, other = (
        (texts * 3)[:11] for texts in (*REFERENCES, OTHER, HYPOTHESES[::-1], HYPOTHESES, OTHER)
    )
    four = [first, second, third, fourth]
    for folder, authors, columns in (
        ("models", "ACDG", four),
        ("peers", ("3", "20"), (made, other)),
    ):
        (files / folder).mkdir()
        for author, texts in zip(authors, columns):
            for document, text in zip(documents, texts):
                before, after = document.rsplit(".", 1)
                path = files / folder / f"{before}.{author}.{after}"
                path.write_text(f"{text}\n", encoding="utf-8")
    arguments = ("--duc", "peers", "models", "--stem", "--bytes", "75")
    result = json.loads(run(*arguments, "--json", "-"))
    rouge = Rouge(("1", "2", "Lsum"), stem=True, limit=Limit("bytes", 75))
    for peer, texts in (("3", made), ("20", other)):
        scores = result["systems"][peer]["rouge155"]
        assert scores == averages(rouge, texts, documents, four)
        assert scores != averages(rouge, texts, None, four)
    assert list(result["systems"]) == ["3", "20"]
    assert "|nrefs:4|" in result["signature"]
    assert list(json.loads(run(*arguments, "--peer", "20", "--json", "-"))["systems"]) == ["20"]
    compared = json.loads(run(*arguments, "--peer", "20", "--compare", "3", "--json", "-"))
    assert list(compared["systems"]) == ["20", "3"]
    assert compared["systems"]["3"] == result["systems"]["3"]
    assert "p" in compared["systems"]["20"]
    assert "p against 3 " in run(*arguments, "--compare", "3")


def test_texts_without_tokens_score_0(files, run):
    (files / "made").write_text("\n \n.\n日本語\nword\n", encoding="utf-8")
    (files / "first").write_text("日本語\n.\n\n日本語\nword\n", encoding="utf-8")
    result = json.loads(run("made", "first", "--json", "-"))
    assert result["systems"]["made"]["without_tokens"] == 4
    assert result["systems"]["made"]["empty"] == 2
    assert result["references_without_tokens"] == 4
    (files / "made").write_text(".\n")
    (files / "first").write_text("日本語\n", encoding="utf-8")
    for several in ("average", "best", "jackknife"):
        arguments = ("made", "first", "first", "--types", "1,9,L,Lsum,W-1.2")
        result = json.loads(run(*arguments, "--several", several, "--json", "-"))
        for scores in result["systems"]["made"]["rouge155"].values():
            for interval in scores.values():
                assert interval == {"value": 0, "low": 0, "high": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give either HYPOTHESES and REFERENCES, or --generate, or --duc"),
        ("made", "give either HYPOTHESES and REFERENCES"),
        ("made first --generate made", "give either"),
        ("--generate made --duc made first", "give either"),
        ("made first --peer 1", "--peer is for --duc"),
        ("made first --frobnicate", "unrecognized arguments: --frobnicate"),
        ("made first --typ 1", "unrecognized arguments: --typ"),
        ("made first --types 1 --types 2", "--types: given twice"),
        ("made first --several best --several average", "--several: given twice"),
        ("made first --several worst", "invalid choice: 'worst'"),
        ("made first --types 1,X", "types must be 1 to 9, L, Lsum, or W- .*, got 'X'"),
        ("made first --types 1,1", "each once, got .'1', '1'.$"),
        ("made first --bytes 0", "--bytes: must be a whole number above 0, got '0'"),
        ("made first --words ten", "--words: must be a whole number above 0, got 'ten'"),
        ("made first --words 1 --bytes 1", "not allowed with argument --words"),
        ("made first --several jackknife", "document 1: 1 references, where at least 2 are needed"),
        ("made first --compare made", "made cannot be compared with itself"),
        ("made first --compare short", "made has 5 lines, short 1"),
        ("made short", "made has 5 lines, short 1"),
        ("made nowhere", "No such file or directory: 'nowhere'"),
        ("made .", "Is a directory"),
        ("--json first made second", "--json: must end in .json, or be -, got 'first'"),
        ("made first --json made/x.json", "made"),
        ("--duc . first", "Not a directory"),
        ("--duc peers models --compare 3", "there is no 3 to compare with"),
        ("--generate made", "made has no hypotheses"),
    ],
)
def test_errors_are_one_line(files, refused, arguments, message):
    (files / "short").write_text("a\n")
    for folder, author in (("models", "A"), ("peers", "1")):
        (files / folder).mkdir()
        (files / folder / f"D1.P.10.T.{author}").write_text("a")
    before = sorted(files.rglob("*"))
    assert re.search(message, refused(*arguments.split()))
    assert sorted(files.rglob("*")) == before


def test_an_error_leaves_older_results_alone(files, refused):
    (files / "x.json").write_text("before")
    (files / "short").write_text("a\n")
    refused("made", "short", "--json", "x.json")
    assert (files / "x.json").read_text() == "before"


def test_control_c(files, capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_read", interrupted)
    assert main(["made", "first", "--json", "x.json"]) == 130
    assert capsys.readouterr() == ("", "")
    assert not (files / "x.json").exists()


def test_in_a_shell(files, run_python, package_dir):
    start = ("-m", "fairseq_regattn.scoring.rouge")
    result = run_python(*start, "made", "first", path=[package_dir.parent])
    assert result.stdout.startswith("system  ROUGE")
    assert result.stderr == ""
    result = run_python(*start, "made", "none", path=[package_dir.parent], expected=2)
    assert result.stdout == ""
    result = run_python(*start, "--help", path=[package_dir.parent])
    assert "95 % confidence" in result.stdout


def test_nobody_reads_on(files, package_dir):
    """What `| true` does; the JSON is there all the same."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fairseq_regattn.scoring.rouge",
            "made",
            "first",
            "--json",
            "x.json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=files,
        env={"PYTHONPATH": str(package_dir.parent)},
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == -signal.SIGPIPE
    process.stderr.close()
    assert json.loads((files / "x.json").read_bytes())["documents"] == 5
