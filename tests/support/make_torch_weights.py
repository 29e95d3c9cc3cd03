"""Make the files of tests/fixtures/torch: weights of two PyTorch networks, inputs, and the outputs
that PyTorch computes: `python -m tests.support.make_torch_weights tests/fixtures/torch`, with the
packages torch and safetensors.
"""

import sys
from pathlib import Path

import numpy as np

IMAGE, TOKENS = (6, 8, 2), 5  # (H, W, C), and the length of a text


def torch_networks():
    """{name: (module, x as PyTorch takes it, x as minidp takes it)}."""
    import torch
    from torch import nn

    torch.manual_seed(3)

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(7, 3), nn.LSTM(3, 4, batch_first=True)
            self.norm, self.head = nn.LayerNorm(4), nn.Linear(4, 2)

        def forward(self, x):
            states, _ = self.lstm(self.embedding(x))
            return self.head(self.norm(states[:, -1]))

    images = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.LayerNorm([4, 3, 4]),
        nn.Flatten(),
        nn.Tanh(),
        nn.Linear(4 * 3 * 4, 5),
        nn.ReLU(),
        nn.Linear(5, 3),
    )
    pixels, ids = torch.randn(9, 2, *IMAGE[:2]), torch.randint(0, 7, (9, TOKENS))
    found = {
        "images": (images, pixels, pixels.permute(0, 2, 3, 1).numpy()),
        "text": (Text(), ids, ids.numpy()),
    }
    for module, *_ in found.values():
        for array in module.parameters():  # also of norms, which begin at 1 and 0
            array.data += 0.3 * torch.randn(array.shape)
    return found


def main(folder):
    """Write NAME.npz, which holds x, y and the state, and NAME.safetensors."""
    from safetensors.numpy import save_file

    for name, (module, x, ours) in torch_networks().items():
        state = {key: array.numpy() for key, array in module.state_dict().items()}
        y = module(x).detach().numpy()
        np.savez(folder / f"{name}.npz", x=ours, y=y, **{f"state/{k}": v for k, v in state.items()})
        save_file(state, folder / f"{name}.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
