"""
A yes or no for every class of a model
======================================

A good model of many classes is there, and most callers only ask "is it class y?". `GatedStudents`
trains a student for each class that answers at the price of one or two dot products. It says yes
where the teacher's score of its class passes a threshold that depends on the row.
"""

from time import perf_counter

import numpy as np
from matplotlib import pyplot

from widemargin import CrammerSingerSVC, GatedStudents, GatedSVC, compare_students
from widemargin.datasets import load_satimage
from widemargin.plotting import DifficultyDisplay, StudentsDisplay

X, y = load_satimage(subset="train", return_X_y=True)
X_test, y_test = load_satimage(subset="test", return_X_y=True)
X, y = X[::2], y[::2]
names = load_satimage().target_names

teacher = CrammerSingerSVC(kernel="rbf", gamma=1.0, C=3.0, tol=0.1).fit(X, y)
print(f"the teacher gets {teacher.score(X_test, y_test):.3f} of the test rows right")

# %%
# A student pays more for rows that the teacher finds easy. How easy a row is depends on the lead of
# its class: `difficulty_degrees` computes it, and this is its picture for one class. Rows are
# scored by a teacher that has not seen them, as `cv=` does in training: on its own training rows a
# good teacher leaves nothing to learn.

half = np.arange(len(y)) % 2 == 0
other = CrammerSingerSVC(kernel="rbf", gamma=1.0, C=3.0, tol=0.1).fit(X[half], y[half])
scores = other.decision_function(X[~half])
DifficultyDisplay.from_scores(scores, y[~half], target=2, decay=0.3)

# %%
# The students beside their rivals: the teacher, a machine for each class trained from the labels
# alone (SVM), students without difficulty (gSVM-0), and two controls that tell where the gain comes
# from: a threshold on the teacher's score alone, and a machine that sees that score as one more
# feature. Most of the gain is the gate's, and the controls have it too.

students = GatedStudents(teacher, C=1e-3, margin=0.5, cv=3)
rivals = compare_students(students, X, y, X_test)
display = StudentsDisplay.from_scores(rivals, y_test)
display.axes_[-1].set_xticks(range(6), names, fontsize=8)
for name, measures in display.measures.items():
    means = ", ".join(f"{key} {np.mean(values):.3f}" for key, values in measures.items())
    print(f"{name:12s} {means}")

# %%
# The ROC of an easy class and of the one that is hardest to tell.

figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, label in zip(axes, (2, 3), strict=True):
    display.plot(roc_of=label, ax=ax)
    ax.set_title(f"is it {names[label]}?")

# %%
# With a linear teacher a student and its gate are one vector, and the teacher is not asked at all.
# Such a student can leave Python's libraries altogether.

linear = CrammerSingerSVC().fit(X, y)
student = GatedSVC(target=3, teacher=linear, C=1e-3).fit(X, y)
is_class = student.export().function()
print("merged:", student.merged_, "| answers:", [is_class(row) for row in X_test[:5].tolist()])
for who, ask in (("teacher", linear.predict), ("student", student.predict)):
    ask(X_test)
    start = perf_counter()
    for _ in range(20):
        ask(X_test)
    print(f"{who}: {1e6 * (perf_counter() - start) / 20 / len(X_test):.2f} microseconds per row")
