"""What the page is told of errors."""

from hopscope import errors
from hopscope.web.policy import Refused
from hopscope.web.refusal import refusal

STATUSES = {
    errors.RunMissing: 404, errors.RunReadOnly: 403, errors.RunBusy: 409, errors.RunDamaged: 409,
    errors.RunMismatch: 409, errors.StoreUnwritable: 507, errors.ConfigError: 422,
    errors.CircuitError: 422, errors.NotLearned: 422, errors.HopscopeError: 422,
}  # fmt: skip
TOLD = {
    "/home/me/runs/a-1/config.json is damaged": "config.json is damaged",
    "cannot read '/srv/x/y': no": "cannot read 'y': no",
    "[/a/b/c] and (/d/e)": "[c] and (e)",
    "paths like value 0>query/itself": "paths like value 0>query/itself",
    "gallery/demo has 1/2 of http://x/y": "gallery/demo has 1/2 of http://x/y",
}


def test_every_error_has_a_status_and_names_no_folder() -> None:
    assert {kind: refusal(kind("x"), str).status for kind in STATUSES} == STATUSES
    assert {text: str(refusal(errors.RunDamaged(text), str)) for text in TOLD} == TOLD
    refused = Refused(429, "wait")
    assert refusal(refused, str) is refused
