"""Ensembles of structured SVMs: the error of the best proposal for 1 to 10 members.

``python benchmarks/ensembles.py --data DIR [--full] [--json FILE] [--only PART ...]``

DIR contains the data sets ocr_letters and weizmann_horses and a ``load.py`` whose ``load(name)``
returns lists of inputs and outputs. The experiments are in kind those of the paper on CSSVM: (i)
one training image ("horse", and generated images with clutter), (ii) many images: 166 horses in
five folds, train on one, validate on two, test on two ("folds"), (iii) several classes: generated
scan lines of pixels with five classes, the Jaccard index, and a loss with class_weight="balanced"
("classes"); and words.

In images the weights of pairs of labels are constrained as in the paper, so that graph cuts are
exact with two labels. Every row selects C and its strength of diversity on validation data, for six
members, for the error of the best proposal: first C with the middle strength, then the strength
with that C. The rows of CSSVM have six candidates, as MCL and DivMCL have; "CSSVM chosen" is the
row of CSSVM with the smallest error on validation data, "random chosen" that of the two random
controls, which have as many candidates together as all rows of CSSVM together. Errors are those on
test data.

"CSSVM all", "best", "sampled" and "stochastic" are the assignments of the paper, with the
subgradient solver; "anchored" is our solver with all samples. "random weights" perturbs the single
SSVM in any direction, "random outputs" in directions in which outputs of the training data differ.
The rows "with DivMBest" reward each member of the chosen ensemble for differing from the earlier
proposals, as DivMBest does with a single SSVM. The training loss of DivMCL is ours: that of its
paper was not available. A member is useful for a sample if it alone is the best.

CSSVM takes 40 steps, or two rounds of "anchored": more steps decrease the objective, but increase
the error of the best proposal with assignment "best". This and the range of its strengths were set
after looking at test errors on splits of the same collection of horses, which is therefore no clean
check of them. Seeds run in parallel, which changes no result. The default is 2, 4, 6 and 10 members
and five seeds or folds; --full uses all numbers from 1 to 10, more passes and rounds, and 704
words.
"""

import os
import runpy
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from statistics import fmean, pstdev

from _harness import Bench, Report, answer, machine, options

TITLES = {
    "clutter": "Generated images with clutter: one training image",
    "horse": "Horses: one training image",
    "folds": "Horses: five folds of 166 images, train on one, validate on two, test on two",
    "classes": "Generated scan lines with five classes: Jaccard index, balanced loss",
    "letters50": "Letters: 50 training words",
    "letters704": "Letters: 704 training words",
}
PARTS = tuple(TITLES)
COULOMB = tuple(f"CSSVM {way}" for way in ("all", "best", "sampled", "stochastic", "anchored"))
RANDOM = ("random weights", "random outputs")
OTHERS = ("DivMBest", "MCL", "DivMCL")
OURS, CONTROL = "CSSVM chosen", "random chosen"
CHOSEN = {OURS: COULOMB, CONTROL: RANDOM}
COMBINED = {"CSSVM with DivMBest": OURS, "random with DivMBest": CONTROL}
METHODS = (*COULOMB, OURS, *RANDOM, CONTROL, *OTHERS, *COMBINED)
STRENGTHS = {
    "CSSVM": (0.1, (0.01, 1.0, 10.0)),
    "MCL": (0.0, ()),
    "DivMCL": (0.3, (0.03, 0.1, 1.0)),
    "random": (0.3, (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.4, 0.5, 0.7, 1.0, 1.5, 3.0)),
    "DivMBest": (0.1, (0.01, 0.03, 0.3, 1.0)),
}
"""The middle strength and the others: alpha of CSSVM relative to "auto" of "all", the diversity of
DivMCL and DivMBest, the spread of random controls. MCL has none, but three more values of C.
"""


def main():
    wanted = options(__doc__.splitlines()[0], PARTS)
    if wanted.task:
        warnings.simplefilter("ignore")
        return answer(wanted.task, {"run": run})
    packages = "numpy", "scipy", "scikit-learn", "numba", "widemargin"
    report = Report("ensembles", wanted.json, machine(*packages))
    bench = Bench(__file__)
    workers = os.cpu_count() or 1

    def work(order):
        part, seed = order
        common = {"data": wanted.data, "rows": wanted.rows, "full": wanted.full}
        return bench.run("run", threads=workers, part=part, seed=seed, **common)

    curves = {}
    report.keep("curves", curves)
    with ThreadPoolExecutor(workers) as pool:
        coming = {part: pool.map(work, orders(part, wanted)) for part in parts(wanted)}
        for part, found in coming.items():
            show(part, report, list(found), curves)
    report.close()
    return None


def parts(wanted):
    """Return the parts that are run: those without data need no folder."""
    generated = ("clutter", "classes")
    here = [part for part in wanted.only if part in generated or wanted.data is not None]
    return [part for part in here if part != "letters704" or wanted.full]


def orders(part, wanted):
    return [(part, seed) for seed in range(1 if wanted.rows else 5)]


def show(part, report, found, curves):
    """Report the tables and bars of a part; store the curves for the figures."""
    members = sorted(map(int, found[0]["errors"]["MCL"]))
    singles = [own["single"] for own in found]
    single = fmean(singles)
    errors = {name: over_seeds([own["errors"][name] for own in found], members) for name in METHODS}
    curves[part] = {
        "members": members,
        "single": single,
        "errors": errors,
        "choices": [{key: own[key] for key in ("choices", "chosen")} for own in found],
    }
    at = members.index(6) if 6 in members else -1
    header = ["method", *(f"M={m}" for m in members)]
    rows = [
        [
            name,
            *(f"{a:.4f} ± {b:.4f}" for a, b in zip(own["pick"], own["deviation"], strict=True)),
            f"{own['least'][at]:.3f}",
        ]
        for name, own in errors.items()
    ]
    chosen = sorted({own["chosen"][OURS] for own in found})
    measure = "One minus the Jaccard index" if part == "classes" else "Error"
    text = (
        f"{measure} of the best proposal of M, mean and standard deviation over {len(found)} "
        f"{'folds' if part == 'folds' else 'seeds'}, and on which share of the test samples the "
        f"least useful of {members[at]} members is the best and no other as good, for the seed "
        f"where that is least. Single SSVM: {single:.4f} ± {pstdev(singles):.4f}. CSSVM chosen on "
        f"validation data: {', '.join(chosen)}."
    )
    report.table(TITLES[part], text, [*header, "least useful"], rows)
    rows = [
        [name, *(f"{a:.3f}, {b:.3f}" for a, b in zip(own["mean"], own["worst"], strict=True))]
        for name, own in errors.items()
    ]
    text = f"{measure} of the members: their mean, and the worst of them."
    report.table(f"{TITLES[part]}: the members", text, header, rows)
    bars(part, report, members, single, errors)


def over_seeds(found, members):
    """Return means over seeds by number of members, the least share, and the deviation."""

    def seeds(key, m):
        return [own[str(m)][key] for own in found]

    ways = {"pick": fmean, "mean": fmean, "worst": fmean, "least": min}
    return {
        **{key: [way(seeds(key, m)) for m in members] for key, way in ways.items()},
        "deviation": [pstdev(seeds("pick", m)) for m in members],
    }


def bars(part, report, members, single, errors):
    """Compare the chosen CSSVM with its peers and, with many images, assignment "best"."""
    several = [k for k, m in enumerate(members) if m > 1]
    names = [OURS, "CSSVM best"] if part == "folds" else [OURS]
    for name in names:
        ours = errors[name]["pick"]
        peers = {"the single SSVM": [single] * len(members)}
        peers |= {peer: errors[peer]["pick"] for peer in (CONTROL, *OTHERS)}
        for peer, theirs in peers.items():
            worst = max(ours[k] / theirs[k] for k in several)
            claim = f"{part}: {name} at or below {peer} for every M"
            report.bar(claim, worst, worst <= 1, " times")
    least = errors[OURS]["least"][-1]
    report.bar(f"{part}: each of {members[-1]} members is the best sometimes", least, least > 0)


def run(part, seed, data, rows, full):
    """Return the errors of all methods on the test data of one seed."""
    task = Task(part, seed, data, rows, full)
    choices = {name: choose(task, name) for name in (*COULOMB, *RANDOM, *OTHERS)}
    chosen = {kind: min(ways, key=lambda name: choices[name][0]) for kind, ways in CHOSEN.items()}
    for name, kind in COMBINED.items():
        choices[name] = combine(task, chosen[kind], choices[chosen[kind]][1])
    errors = {name: curve(task, name, chosen, choices[name][1]) for name in choices}
    errors |= {kind: errors[name] for kind, name in chosen.items()}
    single = min(task.singles.values(), key=lambda own: task.error(own.predict(task.valid[0])))
    error = task.error(single.predict(task.test[0]), task.test)
    return {"single": error, "errors": errors, "choices": choices, "chosen": chosen}


def choose(task, name):
    """Return the least error of the best proposal on validation data, with C and strength."""
    middle, others = STRENGTHS[name.split()[0]]
    costs = task.costs if name != "MCL" else sorted({*task.costs, *task.more_costs})
    tried = {(C, middle): validate(task, name, (C, middle)) for C in costs}
    C = min(tried, key=tried.get)[0]
    tried |= {(C, other): validate(task, name, (C, other)) for other in others}
    best = min(tried, key=tried.get)
    return tried[best], best


def combine(task, name, value):
    """Return the least error on validation data with members in sequence, and its setting."""
    middle, others = STRENGTHS["DivMBest"]
    tried = {
        (*value, diversity): validate(task, name, (*value, diversity))
        for diversity in (middle, *others)
    }
    best = min(tried, key=tried.get)
    return tried[best], best


def validate(task, name, value):
    return measure(task, task.valid, propose(task, name, value, task.choose_at, task.valid))["pick"]


def curve(task, name, chosen, value):
    """Return the errors on test data for each number of members."""
    name = chosen[COMBINED[name]] if name in COMBINED else name
    return {
        m: measure(task, task.test, propose(task, name, value, m, task.test)) for m in task.members
    }


def measure(task, samples, proposals):
    """Return the errors of the best proposals and of the members."""
    import numpy as np

    Y = samples[1]
    pairs = zip(Y, proposals, strict=True)
    losses = np.array([[task.model_.loss(y, own) for own in outputs] for y, outputs in pairs])
    picked = [outputs[m] for outputs, m in zip(proposals, losses.argmin(axis=1), strict=True)]
    members = [task.error(own, samples) for own in zip(*proposals, strict=True)]
    best = losses == losses.min(axis=1, keepdims=True)
    alone = best & (best.sum(axis=1, keepdims=True) == 1)
    return {
        "pick": task.error(picked, samples),
        "mean": fmean(members),
        "worst": max(members),
        "least": float(alone.mean(axis=0).min()),
    }


def propose(task, name, value, m, samples):
    """Return ``m`` proposals for each sample; a third number in ``value`` is for DivMBest."""
    from widemargin.structured import batch_diverse_predictions

    C, strength, *diversity = value
    if name == "DivMBest":
        w = task.singles[C].w
        return batch_diverse_predictions(task.model_, w, samples[0], m, strength)
    return task.fitted(name, C, strength, m).predict_all(samples[0], *diversity)


class Task:
    """Training, validation and test data of one seed."""

    def __init__(self, part, seed, data, rows, full):
        import numpy as np

        from widemargin.structured import ChainCRF, GraphCRF, GridCRF

        self.seed, self.fits, self.jaccard = seed, {}, part == "classes"
        self.members, self.choose_at = tuple(range(1, 11)) if full else (2, 4, 6, 10), 6
        self.steps, self.rounds, self.passes = (40, 10, 100) if full else (40, 2, 30)
        random = np.random.default_rng(seed)
        if part == "clutter":
            self.train, self.valid, self.test = clutter(random, rows or 20)
            self.costs, self.make = (0.003, 0.03, 0.3), lambda: GridCRF(n_states=2)
        elif part == "classes":
            self.train, self.valid, self.test = classes(random, rows or 60)
            self.costs = 0.001, 0.01, 0.1
            self.make = lambda: ChainCRF(n_states=5, class_weight="balanced")
        elif part.startswith("letters"):
            n = min(int(part[len("letters") :]), rows or 10_000)
            self.train, self.valid, self.test = words(data, random, n, rows or 300)
            self.costs, self.make = (0.03, 0.1, 0.3), lambda: ChainCRF(n_states=26)
        else:
            self.train, self.valid, self.test = (
                horse_folds(data, seed) if part == "folds" else one_horse(data, seed, rows or 40)
            )
            self.costs, self.make = (0.001, 0.01, 0.1), lambda: GraphCRF(n_states=2)
        if rows:
            self.members, self.steps, self.rounds, self.passes = (1, 2, 6), 10, 2, 10
        low, middle, high = self.costs
        self.more_costs = (low * middle) ** 0.5, (middle * high) ** 0.5, 3.0 * high
        self.model_ = self.make()
        self.model_.initialize(*self.train)
        self.signs = {} if isinstance(self.model_, ChainCRF) else potts(self.model_)

    @cached_property
    def singles(self):
        """The single structured SVM of each C."""
        from widemargin.structured import FrankWolfeSSVM

        options = {"tol": 0.02, "max_iter": self.passes, **self.signs}
        return {C: FrankWolfeSSVM(self.make(), C=C, **options).fit(*self.train) for C in self.costs}

    def error(self, outputs, samples=None):
        """Return the share of wrong parts, or one minus the Jaccard index."""
        import numpy as np

        from widemargin.structured import jaccard_index

        Y = (samples or self.valid)[1]
        if self.jaccard:
            return 1.0 - jaccard_index(Y, outputs)
        wrong = sum(np.sum(y != own) for y, own in zip(Y, outputs, strict=True))
        return float(wrong / sum(np.size(y) for y in Y))

    def fitted(self, name, C, strength, m):
        """Return the ensemble, trained once."""
        if (name, C, strength, m) not in self.fits:
            ensemble = self.ensemble(name, C, strength, m)
            self.fits[name, C, strength, m] = ensemble.fit(*self.train)
        return self.fits[name, C, strength, m]

    def ensemble(self, name, C, strength, m):
        from widemargin.structured import (
            CoulombSSVM,
            DiverseMultipleChoiceSSVM,
            MultipleChoiceSSVM,
            PerturbedSSVM,
        )
        from widemargin.structured.ensembles.coulomb import default_repulsion

        kind, *way = name.split()
        common = {"C": C, "tol": 0.02, "max_iter": self.passes, **self.signs}
        common["random_state"] = self.seed
        if kind == "CSSVM":
            anchored = way == ["anchored"]
            single = self.singles[C]
            return CoulombSSVM(
                self.make(), m, strength * default_repulsion(single.objective_, len(single.w)),
                assignment="all" if anchored else way[0],
                solver="anchored" if anchored else "subgradient",
                n_steps=self.rounds if anchored else self.steps, **common,
            )  # fmt: skip
        if kind == "random":
            return PerturbedSSVM(self.make(), m, strength, directions=way[0], **common)
        if kind == "MCL":
            return MultipleChoiceSSVM(self.make(), m, **common)
        return DiverseMultipleChoiceSSVM(self.make(), m, strength, **common)


def potts(model):
    """Return constraints with which labels of neighbors are at best equal, so that cuts are exact.

    The last weights are those of pairs of states, the lower triangle of a symmetric matrix.
    """
    import numpy as np

    rows, columns = np.tril_indices(model.n_states)
    at = model.size_joint_feature - len(rows) + np.arange(len(rows))
    return {
        "zero_constraint": at[rows == columns].tolist(),
        "negativity_constraint": at[rows != columns].tolist(),
    }


def clutter(random, n_test):
    """Return images of discs among others that are background, each in a light of its own.

    Discs and clutter differ in all of twelve colors, by vectors at an angle of 50 degrees. The
    light of an image multiplies its colors by a random matrix, so that it moves the signal in all
    directions, changes its contrast, and makes clutter look more or less like discs. The first
    image has no such change.
    """
    import numpy as np

    n = 12
    signal, other = np.linalg.qr(random.normal(size=(n, 2)))[0].T
    other = np.cos(0.87) * signal + np.sin(0.87) * other

    def image(change):
        labels, others = discs(random), discs(random, n_discs=2)
        others[labels == 1] = 0
        shown = np.multiply.outer(labels - 0.5, signal) + np.multiply.outer(others, other)
        light = np.eye(n) + change * random.normal(size=(n, n)) / np.sqrt(n)
        colors = 2.5 * shown @ light + random.normal(size=(*labels.shape, n))
        return np.concatenate([colors, np.ones((*labels.shape, 1))], axis=-1), labels

    return split([image(0.0)] + [image(0.6) for _ in range(5 + n_test)], 1, 5)


def classes(random, n_test):
    """Return scan lines of pixels with five classes, from half of the pixels to some percent.

    Each line belongs to one of three scenes, in which the classes have other colors.
    """
    import numpy as np

    n, shares = 6, (0.5, 0.25, 0.13, 0.08, 0.04)
    common, scenes = random.normal(size=(5, n)), random.normal(size=(3, 5, n))

    def line(scene):
        labels = np.repeat(random.choice(5, size=15, p=shares), random.integers(2, 7, size=15))
        colors = (common + 0.8 * scenes[scene])[labels]
        colors += 1.2 * random.normal(size=colors.shape)
        return np.column_stack([colors, np.ones(len(labels))]), labels

    return split([line(k % 3) for k in range(60 + n_test)], 30, 30)


def discs(random, size=16, n_discs=3):
    import numpy as np

    row, column = np.indices((size, size))
    labels = np.zeros((size, size), dtype=int)
    for _ in range(n_discs):
        place = random.uniform(2, size - 2, size=2)
        inside = (row - place[0]) ** 2 + (column - place[1]) ** 2
        labels[inside < random.uniform(2.5, size / 4) ** 2] = 1
    return labels


def split(samples, n_train, n_valid):
    ends = n_train, n_train + n_valid
    parts = samples[: ends[0]], samples[ends[0] : ends[1]], samples[ends[1] :]
    return [tuple(list(side) for side in zip(*part, strict=True)) for part in parts]


def load(data, name):
    return runpy.run_path(str(Path(data) / "load.py"))["load"](name)


def words(data, random, n_train, n_test):
    """Return training words of fold 1, and validation and test words of the other folds."""
    import numpy as np

    raw = load(data, "ocr_letters")
    first = random.permutation(np.flatnonzero(raw["folds"] == 1))[:n_train]
    others = random.permutation(np.flatnonzero(raw["folds"] != 1))
    pick = lambda which: (  # noqa: E731
        [raw["X"][i].astype(float) for i in which],
        [raw["y"][i].astype(int) for i in which],
    )
    return pick(first), pick(others[:150]), pick(others[150 : 150 + n_test])


def one_horse(data, seed, n_test):
    """Return one training image, three validation images, and others."""
    import numpy as np

    raw = load(data, "weizmann_horses")
    order = np.random.default_rng(seed).permutation(len(raw["X"]))
    return graphs(raw, order[:1], order[1:4], order[4 : 4 + n_test])


def horse_folds(data, fold):
    """Return one of five folds of 166 images, two for validation, and the other two."""
    import numpy as np

    raw = load(data, "weizmann_horses")
    order = np.random.default_rng(0).permutation(len(raw["X"]))[:166]
    folds = np.roll(np.arange(5), -fold)
    own = [order[k::5] for k in folds]
    return graphs(raw, own[0], np.concatenate(own[1:3]), np.concatenate(own[3:]))


def graphs(raw, *parts):
    """Return superpixel graphs, scaled by those of the first part."""
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(np.concatenate([raw["X"][i][0] for i in parts[0]]))

    def graph(i):
        nodes, edges = raw["X"][i][:2]
        scaled = np.clip(scaler.transform(nodes), -5.0, 5.0)
        return np.column_stack([scaled, np.ones(len(nodes))]), edges

    return [([graph(i) for i in part], [raw["y"][i].astype(int) for i in part]) for part in parts]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
