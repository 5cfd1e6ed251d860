"""The linear term of `evenhand.scorers.offline.network`, fitted by ridge regression."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from evenhand.scorers.offline.network import WordPiece, features
from offline_scorer.net import LONGEST
from offline_scorer.sets import ATTRIBUTES, RECORDED, Example

SLOTS = 1 << 16
RIDGE, STEPS = 0.3, 50
BESIDE = 0.5  # how much it counts beside the network, and a label beside a recorded score
_NEAREST = 0.02  # to 0 and 1, where the logit has no end


def fitted(
    recorded: list[Example], labelled: list[Example], vocabulary: dict[str, int]
) -> np.ndarray:
    """Attributes by features. The labelled ones keep the name of a group from being an insult."""
    examples = recorded + labelled
    rows = matrix([one.text for one in examples], vocabulary)
    weight = np.sqrt([1.0] * len(recorded) + [BESIDE] * len(labelled))
    return BESIDE * np.array(
        [_column(rows, examples, weight, name) for name in ATTRIBUTES[:RECORDED]],
        dtype=np.float32,
    )


def _column(
    matrix: sparse.csr_matrix, examples: list[Example], weight: np.ndarray, name: str
) -> np.ndarray:
    rows = [at for at, one in enumerate(examples) if name in one.wanted]
    share = np.array([examples[at].wanted[name] for at in rows]).clip(_NEAREST, 1 - _NEAREST)
    logit, counts = np.log(share / (1 - share)), weight[rows]
    logit -= np.average(logit, weights=counts**2)
    return lsqr(sparse.diags(counts) @ matrix[rows], counts * logit, RIDGE, iter_lim=STEPS)[0]


def matrix(texts: list[str], vocabulary: dict[str, int]) -> sparse.csr_matrix:
    """Texts by features; a long text does not weigh more."""
    wordpiece, words = WordPiece(vocabulary), len(vocabulary)
    columns, ends, values = [], [0], []
    for text in texts:
        pieces = wordpiece.pieces(text)[: LONGEST - 2]
        row = np.array([[vocabulary["[CLS]"], *pieces, vocabulary["[SEP]"]]], dtype=np.int64)
        found, _ = features(row, words, SLOTS)
        columns.append(found[0])
        values.append(np.full(found.size, found.size**-0.5))
        ends.append(ends[-1] + found.size)
    shape = (len(texts), words + SLOTS)
    return sparse.csr_matrix((np.concatenate(values), np.concatenate(columns), ends), shape)
