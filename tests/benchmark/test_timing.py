"""Turns, budgets, ratios and fits, on a clock that only the contestants move."""

import gc
import json

import pytest
import scaling
import timing


@pytest.fixture
def clock(monkeypatch):
    """A clock, and a maker of contestants of a known cost that note their turns."""

    class Clock:
        def __init__(self):
            self.now = 0.0
            self.turns = []

        def contestant(self, name, cost, first=0.0):
            def run():
                self.now += cost if name in self.turns else first + cost
                self.turns.append(name)

            return run

    fake = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: fake.now)
    return fake


def test_contestants_take_turns(clock):
    contestants = {name: clock.contestant(name, cost) for name, cost in (("a", 1.0), ("b", 3.0))}
    seconds = timing.paired(contestants, rounds=2)
    assert clock.turns == [*"ab", *"ab", *"ab"]
    assert seconds == {"a": [1.0, 1.0], "b": [3.0, 3.0]}


def test_budget(clock):
    contestants = {
        "quick": clock.contestant("quick", 0.001),
        "compiles": clock.contestant("compiles", 0.001, first=5.0),
        "slow": clock.contestant("slow", 0.3),
        "endless": clock.contestant("endless", 60.0),
    }
    seconds = timing.paired(contestants, rounds=10, budget=1.0)
    assert {name: len(values) for name, values in seconds.items()} == {
        "quick": 10,
        "compiles": 10,
        "slow": 3,
        "endless": 1,
    }
    assert seconds["compiles"] == pytest.approx(10 * [0.001])
    assert clock.turns.count("compiles") == pytest.approx(1000, rel=0.1)
    assert clock.turns.count("slow") == 2 + 3  # the two calls tell how slow
    assert clock.turns.count("endless") == 1 + 1


def test_no_garbage_is_collected_within_a_turn():
    def fail():
        assert not gc.isenabled()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timing.paired({"a": fail}, rounds=1)
    assert gc.isenabled()


def test_ratios_are_of_the_same_round():
    seconds = {"ours": [1.0, 20.0, 3.0], "slow": [10.0, 100.0]}
    assert timing.ratios(seconds, "slow", "ours") == [10.0, 5.0]
    assert timing.ratios(seconds, "ours", "slow") == [0.1, 0.2]


def test_report(tmp_path, capsys):
    out = tmp_path / "figures.json"
    timing.report("a title", {"base": [1.0, 2.0, 3.0], "other": [2.0, 6.0]}, "base", str(out))
    timing.report_targets([("low", 2.0, "<=", 2.5), ("high", 2.0, ">=", 50)], str(out))
    table, targets = map(json.loads, out.read_text().splitlines())
    assert table["rows"]["other"] == {"seconds": [2.0, 6.0], "ratio": 2.5}
    assert targets["rows"] == [["low", 2.0, "<=", 2.5], ["high", 2.0, ">=", 50]]
    assert {"command", "date", "machine", "threads", "torch", "numba"} <= set(table["about"])
    low, high = capsys.readouterr().out.splitlines()[-2:]
    assert low.endswith(" met")
    assert high.endswith(" MISSED")


def test_exponent():
    sizes = [1000, 3000, 10_000, 100_000]
    slope, miss = scaling.exponent(sizes, [3e-7 * n**1.25 for n in sizes])
    assert slope == pytest.approx(1.25)
    assert miss == pytest.approx(1)
    noise = [1.1, 0.9, 1.0, 1.05]
    slope, miss = scaling.exponent(sizes, [3e-7 * n * f for n, f in zip(sizes, noise)])
    assert slope == pytest.approx(1, abs=0.03)
    assert 1.05 < miss < 1.15
