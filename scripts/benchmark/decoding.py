"""Speed of beam search with each mapping, against softmax and against fairseq's own lstm.

python scripts/benchmark/decoding.py [--arch regattn_lstm_small] [--rounds 9] [--json FILE]

One call of fairseq's SequenceGenerator, beam 5, on one random batch. The weights are random
too, so every translation is made to have the length of the longest source sentence: all models
take the same steps. Two minutes on two cores.
"""

from functools import partial

from contestants import compare, make_task, model_options, models, sources
from fairseq.sequence_generator import SequenceGenerator


def main() -> None:
    args = model_options(__doc__.splitlines()[0], batch=16)
    task = make_task(args)
    sample = {"net_input": sources(args, task.target_dictionary)}
    contestants = {}
    for name, model in models(args, task).items():
        model.eval()
        model.make_generation_fast_(need_attn=False)  # as fairseq-generate does
        generator = SequenceGenerator(
            [model], task.target_dictionary, beam_size=5, min_len=args.length, max_len_b=args.length
        )
        contestants[name] = partial(generator.generate, [model], sample)
    compare(
        f"beam 5, {args.batch} sentences of {args.length} tokens",
        contestants,
        (args.batch, "sentences/s"),
        1.0,
        args,
    )


if __name__ == "__main__":
    main()
