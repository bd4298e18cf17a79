from fractions import Fraction

import numpy as np

from understudy.domain import Distribution, Measurement, Selection, Transcript


def test_answers_keep_their_order_and_kind() -> None:
    transcript = Transcript()
    first = Selection("pick", 3, 1, Fraction(1))
    second = Measurement("a", ("a",), (2,), np.arange(2), Distribution("laplace", Fraction(1)))
    transcript.append(first)
    transcript.append(second)
    assert list(transcript) == [first, second]
    assert transcript.of(Measurement) == [second]
    assert transcript.of(Selection) == [first]
    assert len(transcript) == 2
