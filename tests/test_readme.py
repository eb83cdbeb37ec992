"""What the README shows in Python is what Python answers."""

import doctest
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_python_examples_print_what_the_readme_shows():
    text = README.read_text(encoding="utf-8").replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(examples)
    assert runner.tries >= 12
    assert runner.failures == 0
