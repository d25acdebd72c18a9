"""``DataLoader`` with the arguments of torch's, on the workers of Forebay.

Results lie in memory that the workers share with this process, and are used where they lie. A worker that is killed costs neither a batch nor the run.
``state_dict`` tells where an epoch is, and ``load_state_dict`` goes on from there, with any number of workers.

>>> import torch
>>> from forebay.torch import DataLoader
>>> data = torch.utils.data.TensorDataset(torch.arange(6))
>>> [batch[0].tolist() for batch in DataLoader(data, batch_size=4)]
[[0, 1, 2, 3], [4, 5]]
"""

from __future__ import annotations

from forebay.torch._dataloader import DataLoader

__all__ = ["DataLoader"]
