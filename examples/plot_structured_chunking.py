"""
Named entities from strings (ChainCRF, NodeTransformer)
=======================================================

Words of a sentence are labeled with BIO labels: ``B-PER`` begins the name of a person, ``I-PER``
continues it, ``O`` is no name. Features are strings, labels are strings, and labels that cannot
follow each other are excluded. The text is generated: names of test sentences do not occur in
training sentences, so that words around a name have to be used.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from widemargin.structured import ChainCRF, FrankWolfeSSVM, NodeTransformer, flat_scorer

# %%
# Sentences are made of templates and of names, which are random syllables.

rng = np.random.default_rng(0)
TEMPLATES = [
    "PER met PER in LOC",
    "yesterday PER left LOC for LOC",
    "the mayor of LOC , PER , resigned",
    "PER and PER live near LOC",
    "trains from LOC to LOC are late",
    "nobody in LOC knows PER",
    "the letter of PER was read in LOC by PER",
]
SYLLABLES = ["ba", "den", "ko", "li", "mar", "na", "or", "ri", "sto", "ter", "vel", "wen"]


def name(kind):
    """Return the words of a name: one or two for a person, one or two for a location."""
    words = ["".join(rng.choice(SYLLABLES, 2)).capitalize() for _ in range(rng.integers(1, 3))]
    if kind == "LOC" and rng.random() < 0.3:
        words = [rng.choice(["New", "Upper", "Lower"]), words[0]]
    return words


def sentence():
    """Return words and labels."""
    words, labels = [], []
    for token in rng.choice(TEMPLATES).split():
        own = name(token) if token in ("PER", "LOC") else [token]
        words += own
        named = [f"B-{token}"] + [f"I-{token}"] * (len(own) - 1)
        labels += named if token in ("PER", "LOC") else ["O"]
    return words, labels


def features(words):
    """Return a list of strings for each word."""
    padded = ["<", *words, ">"]
    return [
        [
            f"word={word.lower()}",
            f"capital={word[0].isupper()}",
            f"end={word[-2:]}",
            f"last={last.lower()}",
            f"next={following.lower()}",
        ]
        for last, word, following in zip(padded, words, padded[2:], strict=False)
    ]


texts = [sentence() for _ in range(500)]
X, Y = [features(words) for words, _ in texts], [labels for _, labels in texts]

# %%
# A chain with all transitions, one that excludes "I-PER" after "O", and words one by one.

score = flat_scorer(
    f1_score, average="macro", labels=["B-LOC", "B-PER", "I-LOC", "I-PER"], zero_division=0
)


def report(title, model, train, test):
    """Fit, print the score on test data and return the fitted pipeline."""
    learner = FrankWolfeSSVM(model, C=0.1, tol=0.05)
    tagger = make_pipeline(NodeTransformer(DictVectorizer()), learner).fit(*train)
    print(f"{title}: F1 of labels {score(tagger, *test):.3f}")
    return tagger


def one_by_one(X, Y):
    """Return every word as a sequence of its own."""
    return [[word] for x in X for word in x], [[label] for y in Y for label in y]


train, test = (X[:100], Y[:100]), (X[100:], Y[100:])
report("words one by one", ChainCRF(), one_by_one(*train), one_by_one(*test))
report("chain", ChainCRF(), train, test)
tagger = report("chain with BIO rule", ChainCRF(transitions="bio"), train, test)

# %%
# sklearn-crfsuite reads the same lists of strings: a conditional random field by maximum likelihood
# (L-BFGS), without and with a penalty that was not tuned, and without a rule for labels.

try:
    from sklearn_crfsuite import CRF
except ImportError:
    print("sklearn-crfsuite is not installed")
else:
    for c2 in (0.0, 0.1):
        peer = CRF("lbfgs", c2=c2).fit(*train)
        print(f"sklearn-crfsuite, c2={c2}: F1 of labels {score(peer, *test):.3f}")

# %%
# The probability of each label of a test sentence, by the forward-backward algorithm.

words, truth = max(texts[100:], key=lambda text: len(text[0]))
inputs = tagger[:-1].transform([features(words)])
marginals = tagger[-1].predict_marginals(inputs, temperature=0.5)[0]
labels = tagger[-1].model_.state_labels()

figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
image = axes.imshow(marginals.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
axes.set_xticks(range(len(words)), words, rotation=45, ha="right")
axes.set_yticks(range(len(labels)), labels)
axes.scatter(range(len(words)), [list(labels).index(label) for label in truth], s=12, c="C1")
axes.set_title("Probability of labels; dots are the true ones")
figure.colorbar(image)

# %%
# The best outputs and their scores.

outputs, scores = tagger[-1].predict_n_best(inputs, n_best=3)[0]
for output, value in zip(outputs, scores, strict=True):
    print(f"{value:.2f}  {' '.join(output)}")
