"""Find a circuit that was written by hand; then ablate one of its heads."""

from hopscope import Retrieval, discover
from hopscope.circuits import Ablation, Ablator, Pattern, adapter_of, examples_of
from hopscope.models.planted import planted


def main() -> None:
    task = Retrieval(hops=3, chains=2, dim=8, symbols="one-hot")
    model = planted(task, spare_layers=[1], heads=2)
    circuit = discover(model.model, task, examples=32)
    print(circuit)
    print("found exactly:", set(circuit.paths) == set(model.paths))

    ablator = Ablator(adapter_of(model.model), examples_of(task, 64))
    off = Ablation.of({(2, 0): Pattern()})  # layer 2, head 0 looks evenly everywhere
    for name, losses in zip(
        ("as it is", "2.0 off"), ablator.losses([Ablation(), off]), strict=True
    ):
        print(f"{name}: loss of each hop {[round(x, 3) for x in losses.mean(0).tolist()]}")


if __name__ == "__main__":
    main()
