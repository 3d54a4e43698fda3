"""What the page is told of errors."""

import pytest

from hopscope import errors
from hopscope.web.policy import Refused
from hopscope.web.refusal import refusal


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.RunMissing, 404), (errors.RunReadOnly, 403), (errors.RunBusy, 409),
        (errors.RunDamaged, 409), (errors.RunTooNew, 409), (errors.StoreUnwritable, 507),
        (errors.ConfigError, 422), (errors.CircuitError, 422), (errors.NotLearned, 422),
        (errors.HopscopeError, 422),
    ],
)  # fmt: skip
def test_every_error_has_a_status(kind: type[errors.HopscopeError], status: int) -> None:
    assert refusal(kind("x"), str).status == status


def test_a_refusal_stays_what_it_is() -> None:
    refused = Refused(429, "wait")
    assert refusal(refused, str) is refused


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/home/me/runs/a-1/config.json is damaged", "config.json is damaged"),
        ("cannot read '/srv/x/y': no", "cannot read 'y': no"),
        ("[/a/b/c] and (/d/e)", "[c] and (e)"),
        ("paths like query<value 0/itself", "paths like query<value 0/itself"),
        ("gallery/demo has 1/2 of http://x/y", "gallery/demo has 1/2 of http://x/y"),
    ],
)
def test_folders_of_this_machine_are_left_out(text: str, told: str) -> None:
    assert str(refusal(errors.RunDamaged(text), str)) == told
