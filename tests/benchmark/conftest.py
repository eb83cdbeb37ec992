"""The benchmark scripts are imported as they import each other, by bare names."""

import sys
from pathlib import Path

# Last: `mappings` is a script there and a package of tests here.
sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts" / "benchmark"))
