"""
Self-training on text with naive Bayes
======================================

Most words are rare: a hundred labeled messages contain few of those that distinguish the classes.
Unlabeled messages contain the others beside the known ones, so that pseudo-labels extend the
vocabulary of a classifier. This is where self-training pays, and `PreferenceClassifier` runs it
with any classifier, here with naive Bayes.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import SelfTrainingClassifier

from widemargin import PreferenceClassifier


def messages(n, seed, n_words=3000):
    """Generate messages: word frequencies follow Zipf's law and depend on the class.

    Three of ten messages are spam.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_words + 1) ** 0.9
    tilt = np.random.default_rng(0).normal(size=n_words)
    y = (rng.random(n) < 0.3).astype(int)
    texts = []
    for label in y:
        weights = frequency * np.exp((label - 0.5) * tilt)
        words = rng.choice(n_words, 3 + rng.poisson(12), p=weights / weights.sum())
        texts.append(" ".join(f"word{word}" for word in words))
    return texts, y


texts, y = messages(6600, seed=1)
X = CountVectorizer().fit_transform(texts)
labeled, test = slice(600), slice(3600, None)  # the samples between them are unlabeled
print(texts[0])

# %%
# With `update="recompute"`, all pseudo-labels are recomputed in every round, so that early errors
# can be corrected, and the threshold is tuned by cross-validation. Each point is the mean of three
# draws of the labeled messages.

COUNTS = (30, 60, 100, 200, 300)


def compared(count, seed):
    """Return the F1 of three classifiers on test messages, with this number of labels."""
    chosen = np.random.default_rng(seed).permutation(600)[:count]
    samples = np.append(chosen, np.arange(600, 3600))
    marked = np.append(y[chosen], np.full(3000, -1))
    bayes = MultinomialNB(alpha=0.1)
    models = {
        "labels only": bayes.fit(X[chosen], y[chosen]),
        "SelfTrainingClassifier": SelfTrainingClassifier(MultinomialNB(alpha=0.1), threshold=0.9),
        "PreferenceClassifier": PreferenceClassifier(
            MultinomialNB(alpha=0.1), update="recompute", random_state=seed
        ),
    }
    for name in ("SelfTrainingClassifier", "PreferenceClassifier"):
        models[name].fit(X[samples], marked)
    return {name: f1_score(y[test], model.predict(X[test])) for name, model in models.items()}


results = [[compared(count, seed) for seed in range(3)] for count in COUNTS]
_, axes = pyplot.subplots()
for name in results[0][0]:
    axes.plot(COUNTS, [np.mean([run[name] for run in runs]) for runs in results], label=name)
axes.set(xlabel="labeled messages", ylabel="F1 on new messages", xscale="log")
axes.set_xticks(COUNTS, COUNTS)
axes.minorticks_off()
axes.legend()

# %%
# A constraint on the precision, with a guarantee: half of the labeled messages are calibration
# samples, and the threshold is valid with a probability of 0.9 over their draw.

marked = np.append(y[labeled], np.full(3000, -1))
model = PreferenceClassifier(
    MultinomialNB(alpha=0.1), precision=0.8, confidence=0.9, update="recompute", random_state=0
)
model.fit(X[:3600], marked)
predicted = model.predict(X[test])
print(f"guaranteed: {model.guarantee_.guaranteed}")
print(f"precision {precision_score(y[test], predicted):.3f}")
print(f"recall {recall_score(y[test], predicted):.3f}")
