"""``DataLoader`` with the arguments of torch's ``DataLoader``, on Forebay's workers.

Workers write results to memory that they share with this process, where they are used without a copy. If a worker is
killed, no batch is lost and the run goes on. ``state_dict`` returns the place in an epoch, and ``load_state_dict``
goes on from it, with any number of workers.

>>> import torch
>>> from forebay.torch import DataLoader
>>> data = torch.utils.data.TensorDataset(torch.arange(6))
>>> [batch[0].tolist() for batch in DataLoader(data, batch_size=4)]
[[0, 1, 2, 3], [4, 5]]
"""

from __future__ import annotations

from forebay.torch._dataloader import DataLoader

__all__ = ["DataLoader"]
