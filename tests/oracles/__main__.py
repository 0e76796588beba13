"""`python -m tests.oracles [WORDS] > tests/oracles/allowance.json` runs comparisons and prints a table on stderr."""

from __future__ import annotations

import json
import shutil
import sys

from tests.oracles.agreement import allowed
from tests.oracles.catalogue import COMPARISONS
from tests.support.corpora import CorpusNotHad


def main(words: list[str]) -> None:
    """Run the comparisons whose names contain all words. Print the differences of all: others keep their known ones."""
    document = {}
    print("| comparison | matched | precision | recall | differences |\n|---|---|---|---|---|", file=sys.stderr)
    for name, comparison in COMPARISONS.items():
        known = allowed(name)
        if all(word in name for word in words) and all(map(shutil.which, comparison.tools)):
            try:
                agreement = comparison.agree()
            except CorpusNotHad as error:
                print(error, file=sys.stderr)
            else:
                known = dict(sorted(agreement.differences.items()))
                summary = ", ".join(f"{count} {difference}" for difference, count in known.items())
                figures = f"{agreement.matched} | {agreement.precision:.4f} | {agreement.recall:.4f}"
                by_kind = (
                    f"{kind} {agreement.precision_of(kind):.4f} of {agreement.matched_of.get(kind, 0)}"
                    for kind in comparison.least_of
                )
                summary = "; ".join([*by_kind, summary])
                print(f"| {name} | {figures} | {summary} |", file=sys.stderr)
        if known:
            document[name] = known
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
