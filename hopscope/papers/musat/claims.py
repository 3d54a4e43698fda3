"""What Musat (ICLR 2025) says, claim by claim, in the order of the paper."""

from dataclasses import replace

from hopscope.papers.musat import (
    circuit_claims,
    curriculum_claims,
    depth_claims,
    emergence_claims,
    language_claims,
)
from hopscope.papers.musat.reasons import REASONS

CLAIMS = tuple(
    replace(claim, reason=REASONS.get(claim.id))
    for claim in (
        *depth_claims.CLAIMS,
        *language_claims.CLAIMS,
        *curriculum_claims.CLAIMS,
        *circuit_claims.CLAIMS,
        *emergence_claims.CLAIMS,
    )
)
