"""Generator of samples with very many labels."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils import Bunch, check_random_state

from widemargin._base.options import generator_options as options

_SIBLINGS, _TOPIC_WORDS, _LABEL_WORDS = (
    options.siblings,
    options.topic_words,
    options.label_words,
)


def make_extreme_labels(
    n_samples: int = 1000, n_labels: int = 200, *, n_features: int = 2000,
    labels_per_sample: float = 2.0, words_per_sample: float = 20.0, power: float = 1.0,
    noise: float = 0.3, random_state: Any = None,
) -> Bunch:  # fmt: skip
    r"""Generate documents with labels of a power law over a tree of topics.

    The labels are the leaves of a tree of topics in which each topic has 16 children. Each topic
    and each label has words of its own. The text of a label consists of its words and one word of
    each topic above it. A document has a label drawn from the power law, further labels from
    the topic right above it, and words drawn from its labels, from their topics, and, as noise,
    from a vocabulary that follows Zipf's law.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of documents.
    n_labels : int, default=200
        Number of labels.
    n_features : int, default=2000
        Number of words, at least 100.
    labels_per_sample : float, default=2.0
        Mean number of labels that are drawn for a document, at least 1. Repeated ones count once.
    words_per_sample : float, default=20.0
        Mean number of words of a document.
    power : float, default=1.0
        Exponent of the power law: the label of rank r is drawn with probability in proportion to
        :math:`r^{-\mathrm{power}}`. 0 draws all labels equally often.
    noise : float, default=0.3
        Share of the words that do not depend on the labels, from 0 to 1.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the entries ``X``, a CSR array of shape (n_samples, n_features) of TF-IDF features;
        ``Y``, an indicator matrix of the labels as a CSR array of shape (n_samples, n_labels);
        ``label_texts``, a list of n_labels texts; ``label_features``, their TF-IDF features as a
        CSR array of shape (n_labels, n_features).

    Examples
    --------
    >>> from widemargin.datasets import make_extreme_labels
    >>> data = make_extreme_labels(n_samples=100, n_labels=50, random_state=0)
    >>> data.X.shape, data.Y.shape
    ((100, 2000), (100, 50))
    >>> len(data.label_texts[0].split())
    6
    """
    if n_samples < 1 or n_labels < 2 or n_features < 100:
        raise ValueError(
            "n_samples must be at least 1, n_labels at least 2 and n_features at least 100, got "
            f"{n_samples!r}, {n_labels!r} and {n_features!r}."
        )
    if not (0.0 <= noise <= 1.0 and labels_per_sample >= 1.0 and words_per_sample > 0.0):
        raise ValueError(
            "noise must be from 0 to 1, labels_per_sample at least 1 and words_per_sample "
            f"positive, got {noise!r}, {labels_per_sample!r} and {words_per_sample!r}."
        )
    random = np.random.default_rng(check_random_state(random_state).randint(2**31))
    topics = _Topics(n_labels, n_features, random)
    sample, label = _draw_labels(n_samples, n_labels, labels_per_sample, power, random)
    shape = (n_samples, n_labels)
    Y = sp.csr_array((np.ones(len(sample), np.float32), (sample, label)), shape=shape)
    Y.sum_duplicates()
    Y.data[:] = 1.0
    owner, words = topics.draw_words(Y, words_per_sample, noise, random)
    counts = sp.csr_array((np.ones(len(words)), (owner, words)), shape=(n_samples, n_features))
    transformer = TfidfTransformer(sublinear_tf=True).fit(counts)
    texts = topics.label_words()
    indptr = np.arange(n_labels + 1) * texts.shape[1]
    label_counts = sp.csr_array(
        (np.ones(texts.size), texts.ravel(), indptr), shape=(n_labels, n_features)
    )
    return Bunch(
        X=sp.csr_array(transformer.transform(counts)),
        Y=Y,
        label_texts=[" ".join(f"word{word}" for word in row) for row in texts.tolist()],
        label_features=sp.csr_array(transformer.transform(label_counts)),
    )


class _Topics:
    """Words of labels, and of the topics above them, level by level."""

    def __init__(self, n_labels: int, n_features: int, random: np.random.Generator) -> None:
        self.n_features = n_features
        self.levels = []
        size = n_labels
        while size > 1:
            size = -(-size // _SIBLINGS)
            self.levels.append(random.integers(n_features, size=(size, _TOPIC_WORDS)))
        self.words = random.integers(n_features, size=(n_labels, _LABEL_WORDS))

    def label_words(self) -> np.ndarray:
        """Return the words of all labels, and one of each topic above them."""
        label = np.arange(len(self.words))
        above = [words[label // _SIBLINGS ** (k + 1), 0] for k, words in enumerate(self.levels)]
        return np.column_stack([self.words, *above])

    def draw_words(
        self, Y: Any, mean: float, noise: float, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return documents and words that occur in them."""
        lengths = 1 + random.poisson(max(mean - 1.0, 0.0), size=Y.shape[0])
        owner = np.repeat(np.arange(Y.shape[0]), lengths)
        picked = Y.indptr[owner] + random.integers(np.diff(Y.indptr)[owner])
        label = Y.indices[picked].astype(np.int64)
        words = self.words[label, random.integers(_LABEL_WORDS, size=len(owner))]
        level = random.integers(2 * len(self.levels), size=len(owner))
        for k, table in enumerate(self.levels):  # half of the words are those of topics
            at = np.flatnonzero(level == k)
            drawn = random.integers(_TOPIC_WORDS, size=len(at))
            words[at] = table[label[at] // _SIBLINGS ** (k + 1), drawn]
        at = np.flatnonzero(random.random(len(owner)) < noise)
        # Zipf's law, by the inverse of its continuous distribution function.
        words[at] = (self.n_features ** random.random(len(at))).astype(np.int64) - 1
        return owner, words


def _draw_labels(
    n_samples: int, n_labels: int, mean: float, power: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and labels that they have."""
    weight = np.arange(1, n_labels + 1) ** -float(power)
    ranked = random.permutation(n_labels)
    ends = np.cumsum(weight) / np.sum(weight)
    positions = np.minimum(np.searchsorted(ends, random.random(n_samples)), n_labels - 1)
    first = ranked[positions]
    sample = np.repeat(np.arange(n_samples), random.poisson(mean - 1.0, size=n_samples))
    group = first[sample] // _SIBLINGS * _SIBLINGS
    others = group + random.integers(np.minimum(_SIBLINGS, n_labels - group))
    return np.concatenate([np.arange(n_samples), sample]), np.concatenate([first, others])
