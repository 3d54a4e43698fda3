"""Everything that the two papers claim, and everything of them that can be reproduced."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hopscope.errors import ConfigError
from hopscope.names import hint
from hopscope.papers.chen import claims as chen_claims
from hopscope.papers.chen import targets as chen_targets
from hopscope.papers.claim import Claim
from hopscope.papers.musat import claims as musat_claims
from hopscope.papers.musat import targets as musat_targets
from hopscope.papers.results_folder import Results
from hopscope.papers.target import Target


@dataclass(frozen=True)
class Registry:
    """Targets and claims by name, in the order in which they are shown."""

    targets: Mapping[str, Target]
    claims: Mapping[str, Claim]

    def results(self, root: Path) -> Results:
        """What was measured of these targets, in this folder."""
        return Results(root, self.targets)

    def matching(self, pattern: str) -> list[Target]:
        """The target of this name, or all whose names begin so (`musat`, `musat/fig4`)."""
        if pattern in self.targets:
            return [self.targets[pattern]]
        found = [each for name, each in self.targets.items() if name.startswith(pattern)]
        if not found:
            known = f"there are {', '.join(self.targets)}"
            raise ConfigError(f"no target {pattern!r}: {hint(pattern, self.targets, known)}")
        return found


PAPERS = Registry(
    targets={each.name: each for each in (*musat_targets.TARGETS, *chen_targets.TARGETS)},
    claims={claim.id: claim for claim in (*musat_claims.CLAIMS, *chen_claims.CLAIMS)},
)
"""All targets and claims of the two papers."""
