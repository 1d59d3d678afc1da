"""Small models of torch that can be made a graph, or cannot. Imported where they run: torch takes seconds to import."""

import torch

from memory_store.embedding.sentence_encoder import Features

PROBE: Features = {"input_ids": torch.tensor([[5, 3, 1], [2, 2, 0]]), "attention_mask": torch.ones(2, 3).long()}
LONGER: Features = {
    "input_ids": torch.tensor([[1, 2, 3, 4, 5]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 0]]),
}


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


class SmallWeights(torch.nn.Module):
    """Tells by weights that are small beside others of their row, which int8 rounds to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = torch.nn.Linear(32, 2, bias=False)
        self._rows.weight.data[:] = 0.0
        self._rows.weight.data[:, 0] = 1000.0
        self._rows.weight.data[0, 1:] = self._rows.weight.data[1, 2:] = 1.0

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Unit vectors of the share of each token among the first six."""
        counted = torch.nn.functional.one_hot(input_ids, 32).float() * attention_mask.unsqueeze(-1)
        return torch.nn.functional.normalize(self._rows(counted.sum(1)), dim=1)


class Untraceable(Directions):
    """Refuses a trace, and is written in what TorchScript does not know."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Unit vectors, but not in a trace."""
        if any(torch.jit.is_tracing() for _ in range(1)):  # pyright: ignore[reportPrivateImportUsage]
            raise TypeError("no traces")
        return super().forward(input_ids, attention_mask)
