"""All claims of the two papers, and all experiments that decide them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hopscope.errors import ConfigError
from hopscope.names import hint
from hopscope.papers.chen import claims as chen_claims
from hopscope.papers.chen import experiments as chen
from hopscope.papers.claim import Claim
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.judge import Finding
from hopscope.papers.musat import claims as musat_claims
from hopscope.papers.musat import experiments as musat
from hopscope.papers.results import Results


@dataclass(frozen=True)
class Registry:
    """Experiments and claims by name, in the order in which they are shown."""

    experiments: Mapping[str, PaperExperiment]
    claims: Mapping[str, Claim]

    def results(self, root: Path) -> Results:
        """Return the results of these experiments in this folder."""
        return Results(root, self.experiments)

    def matching(self, pattern: str) -> list[PaperExperiment]:
        """Return the experiment of this name, or all whose names begin with it (`musat/fig4`).

        Raises ConfigError if there is none.
        """
        if pattern in self.experiments:
            return [self.experiments[pattern]]
        found = [each for name, each in self.experiments.items() if name.startswith(pattern)]
        if not found:
            known = f"there are {', '.join(self.experiments)}"
            raise ConfigError(
                f"no experiment {pattern!r}: {hint(pattern, self.experiments, known)}"
            )
        return found

    def judged(self, pattern: str, results: Results) -> list[tuple[Claim, Finding]]:
        """Return the claim of this name (with or without its paper) and its verdict, or all claims
        whose names begin with it. Raises ConfigError if there is none.
        """
        names = {name: (name, name.partition("/")[2]) for name in self.claims}
        found = [name for name, both in names.items() if pattern in both] or [
            name for name, both in names.items() if any(each.startswith(pattern) for each in both)
        ]
        if not found:
            raise ConfigError(
                f"no claim {pattern!r}: "
                f"{hint(pattern, self.claims, '`hopscope papers claims` lists all')}"
            )
        return [(self.claims[name], self.claims[name].finding(results)) for name in found]


PAPERS = Registry(
    experiments={each.name: each for each in (*musat.EXPERIMENTS, *chen.EXPERIMENTS)},
    claims={claim.id: claim for claim in (*musat_claims.CLAIMS, *chen_claims.CLAIMS)},
)
"""All experiments and claims of the two papers."""
