"""Readable attention for fairseq: softmax, sparsemax, fusedmax, oscarmax and friends.

Importing this package registers its models, tasks, criterion and scorer with fairseq; that is
what ``--user-dir`` does. The registration waits until fairseq itself is imported, so
``from fairseq_regattn.mappings import fusedmax`` needs torch and numba only.
"""

import wrapt

__version__ = "0.1.0"


@wrapt.when_imported("fairseq")
def _register(_fairseq) -> None:
    from fairseq_regattn import compat, errors

    compat.apply()
    errors.report_in_one_line()
    import fairseq_regattn.criterions  # each registers what it defines
    import fairseq_regattn.models
    import fairseq_regattn.scoring.scorer
    import fairseq_regattn.tasks  # noqa: F401
