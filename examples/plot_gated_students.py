"""
Distilling a multi-class model into binary detectors
====================================================

A multi-class model is often used for one question only: does a sample belong to class y?
`GatedStudents` trains a binary detector (student) for each class, whose prediction costs one or two
dot products. The student of a class accepts a sample if the score of that class by the multi-class
model (teacher) exceeds a threshold that depends on the sample.
"""

from functools import partial
from time import perf_counter

import numpy as np
from matplotlib import pyplot

from widemargin import (
    CrammerSingerSVC,
    GatedStudents,
    GatedSVC,
    LinearSVC,
    compare_students,
    difficulty_degrees,
    early_exit_predict,
)
from widemargin.datasets import load_satimage, load_vowel
from widemargin.plotting import DifficultyDisplay, StudentsDisplay

X, y = load_satimage(subset="train", return_X_y=True)
X_test, y_test = load_satimage(subset="test", return_X_y=True)
X, y = X[::2], y[::2]
names = load_satimage().target_names

teacher = CrammerSingerSVC(kernel="rbf", gamma=1.0, C=3.0, tol=0.1).fit(X, y)
print(f"test accuracy of the teacher: {teacher.score(X_test, y_test):.3f}")

# %%
# Students and other methods: the teacher, an SVM for each class trained on labels alone (SVM),
# students without and with degrees of difficulty (gSVM-0 and gSVM), and two controls that show the
# origin of the gain: a threshold on the teacher's score alone, and an SVM with that score as an
# additional feature. Most of the gain comes from the gate, and the controls have it too. The scores
# of training samples are out of fold (``cv=3``): on its own training samples, a good teacher makes
# too few errors for a student to correct.

students = GatedStudents(teacher, C=1e-3, margin=0.5, cv=3)
scores = compare_students(students, X, y, X_test)
display = StudentsDisplay.from_scores(scores, y_test)
display.axes_[-1].set_xticks(range(6), names, fontsize=8)
for method, metrics in display.metrics.items():
    means = ", ".join(f"{metric} {np.mean(values):.3f}" for metric, values in metrics.items())
    print(f"{method:12s} {means}")

# %%
# The ROC curves of an easy class and of the hardest one.

figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, label in zip(axes, (2, 3), strict=True):
    display.plot(roc_of=label, ax=ax)
    ax.set_title(names[label])

# %%
# gSVM weights samples by degrees of difficulty: samples that are easy for the teacher cost more.
# The degree is a function of the relative margin of the teacher, positive where it is right (the
# coding function, figure 1 of the gSVM paper). Scores of 1 and 1 - margin have this margin.

margin = np.linspace(-2.0, 2.0, 201)
two_scores = np.column_stack([np.ones_like(margin), 1.0 - margin])
figure, ax = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
for decay in (0.1, 0.3, 0.5):
    labels = np.zeros(len(margin), dtype=int)
    degrees = difficulty_degrees(two_scores, labels, target=0, decay=decay, classes=[0, 1])
    ax.plot(margin, degrees, label=f"decay {decay}")
ax.set(xlabel="relative margin of the teacher", ylabel="degree of difficulty", ylim=(0, 1.05))
ax.legend()

# %%
# `difficulty_degrees` computes the degrees of samples, and this is their plot for one class. They
# did not improve accuracy in our benchmarks, so that the default is ``difficulty=None``.

half = np.arange(len(y)) % 2 == 0
other = CrammerSingerSVC(kernel="rbf", gamma=1.0, C=3.0, tol=0.1).fit(X[half], y[half])
DifficultyDisplay.from_scores(other.decision_function(X[~half]), y[~half], target=2, decay=0.3)

# %%
# With a linear teacher, student and gate are merged into one weight vector. Such a student can be
# exported to a function without dependencies.

linear = CrammerSingerSVC().fit(X, y)
student = GatedSVC(target=3, teacher=linear, C=1e-3).fit(X, y)
is_class = student.export().to_function()
print("merged:", student.merged_, "| predictions:", [is_class(x) for x in X_test[:5].tolist()])

# %%
# Time of a prediction per sample of a batch (figure 4 of the paper): the linear teacher, the
# teacher that stops as soon as another class wins (early exit), the merged student, and an SVM for
# the class.


def microseconds(predict, samples):
    """Return the time per sample, the shortest of a few."""
    seconds = []
    for _ in range(20):
        start = perf_counter()
        predict(samples)
        seconds.append(perf_counter() - start)
    return 1e6 * min(seconds) / len(samples)


sets = {"satimage": (X, y, X_test)}
vowel = load_vowel(subset="train", return_X_y=True)
sets["vowel"] = (*vowel, load_vowel(subset="test").data)
times = {}
for name, (samples, target, test) in sets.items():
    teacher = CrammerSingerSVC().fit(samples, target)
    student = GatedSVC(target=3, teacher=teacher, C=1e-3).fit(samples, target)
    svm = LinearSVC(C=1e-2).fit(samples, target == 3)
    predictors = {
        "teacher": teacher.predict,
        "early exit": partial(early_exit_predict, teacher, target=3),
        "student": student.predict,
        "SVM": svm.predict,
    }
    times[name] = {who: microseconds(predict, test) for who, predict in predictors.items()}

figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for ax, (name, values) in zip(axes, times.items(), strict=True):
    ax.bar(list(values), list(values.values()), color=[f"C{k}" for k in range(4)])
    ax.set(title=name, ylabel="microseconds per sample")
