"""The n-gram experiment in short: chains, the prediction of theory, training, results."""

import argparse
from tempfile import TemporaryDirectory

from hopscope import Descent, InductionModel, NgramExperiment, NgramProcess
from hopscope.ngram import approach, choice, exact, train, transfer, winner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=9_000)
    chosen = parser.parse_args()

    process, model = NgramProcess(parents=(1, 3)), InductionModel(window=3)
    print("predicted: heads at lags", winner(exact(process, model)))

    descent = Descent(epochs=(500, 5_000, 500), chains=chosen.chains)
    experiment = NgramExperiment(process=process, model=model, descent=descent)
    with TemporaryDirectory() as folder:
        run = train(experiment, folder)
        print("learned:  ", choice(model, run.course(0).at(-1)))
        begin, end = approach(run, 0)[0], approach(run, 0)[-1]
        print(f"distance to an induction head: {begin.distance:.3f}, then {end.distance:.3f}")
        for other, found in transfer(run, 0, lengths=(20, 400), alphas=(1.0,)):
            losses = f"loss {found.expected.model:.3f}, Bayes {found.expected.bayes:.3f}"
            print(f"length {other.length:3}, alpha {other.alpha:3}: {losses}")


if __name__ == "__main__":
    main()
