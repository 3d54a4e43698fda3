"""Examples of two hops, and what measures many ablations of a random model on them."""

import pytest

from hopscope.circuits import Ablator, Exam, exam_of, subject_of
from hopscope.models import Transformer
from hopscope.models.planted import Planted


@pytest.fixture
def exam(two_hops: Planted) -> Exam:
    return exam_of(two_hops.task, 6)


@pytest.fixture
def ablator(random_model: Transformer, exam: Exam) -> Ablator:
    return Ablator(subject_of(random_model), exam)
