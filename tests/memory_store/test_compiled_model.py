"""The embedding model as a graph: only where it gives what the model gives."""

import logging

import pytest

from memory_store.embedding.sentence_encoder import compiled


def test_a_graph_gives_the_vectors_of_its_model_for_any_number_of_tokens() -> None:
    from tests.memory_store.traced_models import LONGER, PROBE, Directions

    model = Directions()
    run = compiled(model, PROBE, threads=1, products="float32")

    assert run is not None
    assert list(run([LONGER])[0][0]) == pytest.approx(model(*LONGER.values())[0].tolist(), abs=1e-5)


def test_a_batch_that_fails_changes_no_later_vectors() -> None:
    from tests.memory_store.traced_models import LONGER, PROBE, Directions

    model = Directions()
    run = compiled(model, PROBE, threads=2, products="float32")
    assert run is not None
    malformed = {name: tensor[None] for name, tensor in LONGER.items()}

    with pytest.raises(RuntimeError):
        run([LONGER, PROBE, malformed])

    found = run([PROBE, LONGER])
    for features, vectors in zip((PROBE, LONGER), found, strict=True):
        assert list(vectors[0]) == pytest.approx(model(*features.values())[0].tolist(), abs=1e-5)


@pytest.mark.parametrize(("model", "said"), [("TurnsWhenAlone", "gives other vectors"), ("Untraceable", "no traces")])
def test_a_model_that_is_no_graph_runs_as_it_is(model: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    from tests.memory_store import traced_models

    with caplog.at_level(logging.WARNING):
        assert compiled(getattr(traced_models, model)(), traced_models.PROBE, threads=1, products="float32") is None

    assert said in caplog.text


def test_a_model_that_int8_turns_too_far_is_multiplied_in_float32(caplog: pytest.LogCaptureFixture) -> None:
    from tests.memory_store.traced_models import LONGER, PROBE, SmallWeights

    model = SmallWeights()
    run = compiled(model, PROBE, threads=1, products="int8")

    assert run is not None
    assert list(run([LONGER])[0][0]) == pytest.approx(model(*LONGER.values())[0].tolist(), abs=1e-3)
    assert not caplog.records
