"""Run in a process of its own under numba's CUDA simulator: what do the CUDA kernels give?

NUMBA_ENABLE_CUDASIM=1 python tests/mappings/simulated.py QUESTIONS ANSWERS

The simulator runs the kernels in Python, a thread each, on host arrays. So tensors stay on the
CPU, and the CPU's way of running a kernel is replaced by the launch on CUDA.
"""

import sys
from typing import Any, Dict

import torch

from fairseq_regattn import mappings
from fairseq_regattn.mappings import _kernels


def answer(question: Dict[str, Any]) -> Dict[str, torch.Tensor]:
    """Weights of a mapping, and gradients in whatever requires them."""
    params = {
        name: torch.as_tensor(v, dtype=question["scores"].dtype).clone()
        for name, v in question["params"].items()
    }
    scores = question["scores"].clone()
    inputs = {"scores": scores, **params}
    for tensor in inputs.values():
        tensor.requires_grad_()
    function = getattr(mappings, question["mapping"])
    weights = function(scores, padding_mask=question["mask"], **params)
    grads = torch.autograd.grad(weights, list(inputs.values()), question["upstream"])
    return {"weights": weights.detach(), **dict(zip(inputs, grads))}


def main() -> None:
    import numba

    assert numba.config.ENABLE_CUDASIM
    launches = []

    def launch(kernel, *arguments):
        launches.append(kernel.name)
        if arguments[0].numel():
            _kernels.on_cuda(kernel, *arguments)

    _kernels._on_cpu = launch
    _kernels._device_array = lambda tensor: tensor.numpy()
    _kernels._stream = lambda device: 0
    questions = torch.load(sys.argv[1])
    answers = [answer(question) for question in questions]
    torch.save({"answers": answers, "launches": sorted(set(launches))}, sys.argv[2])


if __name__ == "__main__":
    main()
