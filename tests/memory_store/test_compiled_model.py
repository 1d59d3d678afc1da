"""The embedding model as a graph: only where it gives what the model gives."""

import logging

import pytest
import torch

from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, Features, SentenceEncoder, compiled

_PROBE: Features = {"input_ids": torch.tensor([[5, 3, 1], [2, 2, 0]]), "attention_mask": torch.ones(2, 3).long()}


class Directions(torch.nn.Module):
    """The mean of its tokens' directions, of length one."""

    def __init__(self) -> None:
        super().__init__()
        self._table = torch.nn.Embedding(8, 4, _weight=torch.randn(8, 4, generator=torch.Generator().manual_seed(0)))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Unit vectors."""
        found = (self._table(input_ids) * attention_mask.unsqueeze(-1)).sum(1)
        return torch.nn.functional.normalize(found, dim=1)


class TurnsWhenAlone(Directions):
    """Asks in Python how many texts there are, which a trace decides once."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Unit vectors, the other way round for one text."""
        found = super().forward(input_ids, attention_mask)
        return -found if input_ids.shape[0] == 1 else found


class Untraceable(Directions):
    """Refuses a trace, and is written in what TorchScript does not know."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Unit vectors, but not in a trace."""
        if any(torch.jit.is_tracing() for _ in range(1)):  # pyright: ignore[reportPrivateImportUsage]
            raise TypeError("no traces")
        return super().forward(input_ids, attention_mask)


def test_a_graph_gives_the_vectors_of_its_model_for_any_number_of_tokens() -> None:
    model = Directions()
    run = compiled(model, _PROBE, threads=1, bfloat16=False)
    longer = {"input_ids": torch.tensor([[1, 2, 3, 4, 5]]), "attention_mask": torch.tensor([[1, 1, 1, 1, 0]])}

    assert run is not None
    assert list(run(longer)[0]) == pytest.approx(model(*longer.values())[0].tolist(), abs=1e-5)


@pytest.mark.parametrize(("model", "said"), [(TurnsWhenAlone(), "gives other vectors"), (Untraceable(), "no traces")])
def test_a_model_that_is_no_graph_runs_as_it_is(model: Directions, said: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert compiled(model, _PROBE, threads=1, bfloat16=False) is None

    assert said in caplog.text


def test_the_default_model_is_compiled(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    SentenceEncoder(DEFAULT_MODEL, threads=1, batch=32)

    assert not caplog.records
