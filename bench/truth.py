"""Does evenhand tell the truth where the truth is known? Hours, no endpoint.

    EVENHAND_DATA=… python -m bench.truth            # or `make bench-truth`
    EVENHAND_DATA=… python -m bench.truth --short    # minutes

Each module of `bench/simulated` has figures of its own; the last line has those that are promised.
"""

import argparse
import importlib.util
import math

MODULES = ("coverage", "decisions", "certificates")
PROMISED = ("coverage_min", "coverage_max", "worst_tail", "twin_red", "false_worth",
            "false_not_worth", "at_margin")  # fmt: skip


def figures(short: bool) -> dict[str, float]:
    """The figures of every module that there is, printed as they come."""
    found: dict[str, float] = {}
    for name in MODULES:
        full = f"bench.simulated.{name}"
        if importlib.util.find_spec(full) is None:
            continue
        own: dict[str, float] = importlib.import_module(full).figures(short=short)
        print(f"\n{name}")
        for key, value in own.items():
            print(f"  {key:40} {value:.3f}", flush=True)
        found |= own
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--short", action="store_true", help="fewer draws: seconds")
    found = figures(parser.parse_args().short)
    promised = (f"{name}={found.get(name, math.nan):.3f}" for name in PROMISED)
    print(f"\nRESULT {' '.join(promised)}")


if __name__ == "__main__":
    main()
