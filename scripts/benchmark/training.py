"""Training speed of each mapping, against softmax and against fairseq's own lstm.

python scripts/benchmark/training.py [--arch regattn_lstm_small] [--rounds 9] [--json FILE]

One update is fairseq's cross entropy, its gradient, and fairseq's Adam, on one random batch;
every model has the same sizes and dropouts. What fairseq-train does besides (reading batches,
logging) costs all of them the same, and is left out. Three minutes on two cores.
"""

import torch
from contestants import compare, make_task, model_options, models, sources
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.optim.adam import Adam


def main() -> None:
    args = model_options(__doc__.splitlines()[0], batch=64)
    task = make_task(args)
    made = models(args, task)
    target, shifted = torch.randint(4, len(task.target_dictionary), (2, args.batch, args.length))
    sample = {
        "net_input": {**sources(args, task.target_dictionary), "prev_output_tokens": shifted},
        "target": target,
        "ntokens": target.numel(),
    }

    def update(model):
        model.train()
        criterion = CrossEntropyCriterion(task, sentence_avg=False)
        optimizer = Adam(model.parameters(), lr=1e-3)

        def run() -> None:
            loss, size, _ = criterion(model, sample)
            optimizer.zero_grad()
            (loss / size).backward()
            optimizer.step()

        return run

    compare(
        f"one update of {args.batch} x {args.length} tokens",
        {name: update(model) for name, model in made.items()},
        (target.numel(), "tokens/s"),
        1.2,
        args,
    )


if __name__ == "__main__":
    main()
