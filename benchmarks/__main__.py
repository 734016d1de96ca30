"""Run the benchmarks, print the results, and write them to docs/performance.md.

Usage: python -m benchmarks [--only NAME ...] [--quick]
"""

import argparse

from benchmarks.registry import BENCHMARKS
from benchmarks.report import to_markdown, to_text, write


def main() -> None:
    """Run the chosen benchmarks one after another."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare speed and size with other tools."
    )
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument(
        "--quick", action="store_true", help="use little input, to show that it works, and write nothing"
    )
    arguments = parser.parse_args()
    for name in arguments.only or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        print(f"\n{benchmark.title} ({name})", flush=True)
        result = benchmark.run(arguments.quick)
        for table in result.tables:
            print(f"\n{to_text(table)}")
        for remark in result.remarks:
            print(f"- {remark}")
        if not arguments.quick:
            write(name, to_markdown(benchmark, result))


if __name__ == "__main__":
    main()
