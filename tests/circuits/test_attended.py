"""What is shown under an ablation is what is measured under it."""

import pytest
import torch

from hopscope.circuits import Ablation, Ablator, exam_of, patterns, subject_of
from hopscope.circuits.attended import attended
from hopscope.circuits.changes import changes_of
from hopscope.configs import Model, Retrieval
from hopscope.models import Transformer

TASK = Retrieval(hops=2, chains=2)
MODEL = Transformer.seeded(Model(layers=3, heads=2, d_model=16), TASK.interface(), 1)


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("0.1=uniform", "2.0:query=itself"),
        ("1.0=mean", "1.1=resample", "0.0=previous"),
        ("0.0=position", "2.1=query<value 0/itself"),
    ],
)
def test_outputs_lose_what_an_ablator_measures(texts: tuple[str, ...]) -> None:
    subject, exam = subject_of(MODEL), exam_of(TASK, 6)
    ablation = Ablation.of(changes_of(texts))
    seen = attended(subject, exam, ablation)
    measured = Ablator(subject, exam).losses([ablation])[0]
    torch.testing.assert_close(exam.marks(seen.outputs), measured)
    torch.testing.assert_close(seen.patterns.sum(-1), torch.ones(seen.patterns.shape[:-1]))


def test_nothing_changed_is_the_model_as_it_is() -> None:
    subject, exam = subject_of(MODEL), exam_of(TASK, 3)
    seen = attended(subject, exam)
    torch.testing.assert_close(seen.patterns, torch.stack(list(patterns(subject, exam.inputs))))
