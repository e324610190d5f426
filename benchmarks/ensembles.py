"""Ensembles of structured SVMs: the error of the best proposal for 1 to 10 members.

``python benchmarks/ensembles.py --data DIR [--full] [--json FILE] [--only PART ...]``

DIR contains the data sets ocr_letters and weizmann_horses and a ``load.py`` whose ``load(name)``
returns lists of inputs and outputs. For each seed, C is selected for a single structured SVM on
validation data. The strength of diversity of a method is selected for two members there, for up to
three members, or for six, for more (for two throughout on the 704 words). Errors are those on test
data. The training of a member has as many passes as that of the single SSVM. MCL and DivMCL train
their members up to ten times; Coulomb starts from the single SSVM and takes steps, or for
"anchored" three rounds (--full: ten; two on the 704 words) of as many passes, at most 50.

"random" perturbs the single SSVM in any direction, "random outputs" in directions in which outputs
of the training data differ; "kept" is "anchored" with the single SSVM as first member; "in turn"
rewards the members of "kept", or of "random", for differing from the earlier proposals, as DivMBest
does with a single SSVM; "chosen" is the variant of Coulomb, or of the random controls, with the
smallest error on validation data. A member is useful for a sample if it alone is the best.

Seeds run in parallel, which changes no result. The default is 1, 2, 4, 6 and 10 members (1, 2 and 6
on the 704 words) and five seeds, ten for groups of five, which are two groups; --full uses all
numbers from 1 to 10, ten seeds, and more steps and test data.
"""

import os
import runpy
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import fmean, pstdev

from _harness import Bench, Report, answer, machine, options

PARTS = ("grid9", "grid43", "letters50", "horses", "folds", "letters704")
TITLES = {
    "grid9": "One image of a grid, 9 weights",
    "grid43": "One image of a grid, 43 weights",
    "letters50": "Letters, 50 words, 4004 weights",
    "letters704": "Letters, 704 words, 4004 weights",
    "horses": "Horses, one image, 79 weights",
    "folds": "Horses, groups of five: train on one, validate on two, test on two",
}
COULOMB = (
    "Coulomb all",
    "Coulomb best",
    "Coulomb sampled",
    "Coulomb stochastic",
    "Coulomb anchored",
    "Coulomb kept",
    "Coulomb in turn",
)
RANDOM = ("random", "random outputs", "random in turn")
OTHERS = ("DivMBest", "MCL", "DivMCL")
OURS, CONTROL = "Coulomb chosen", "random chosen"
CHOSEN = {OURS: COULOMB, CONTROL: RANDOM}
# Coulomb is selected among several variants: so is the control.
RIVALS = (CONTROL, *OTHERS)
METHODS = (*COULOMB, OURS, *RANDOM, *RIVALS)


def main():
    wanted = options(__doc__.splitlines()[0], PARTS)
    if wanted.task:
        warnings.simplefilter("ignore")
        return answer(wanted.task, {"run": run})
    packages = "numpy", "scipy", "scikit-learn", "numba", "widemargin"
    report = Report("ensembles", wanted.json, machine(*packages))
    bench = Bench(__file__)
    parts = [part for part in wanted.only if part.startswith("grid") or wanted.data is not None]
    workers = os.cpu_count() or 1

    def work(order):
        part, seed = order
        common = {"data": wanted.data, "rows": wanted.rows, "full": wanted.full}
        return bench.run("run", threads=workers, part=part, seed=seed, **common)

    curves = {}
    report.keep("curves", curves)
    with ThreadPoolExecutor(workers) as pool:
        coming = {part: pool.map(work, orders(part, wanted)) for part in parts}
        for part, found in coming.items():
            show(part, report, list(found), curves)
    report.close()
    return None


def orders(part, wanted):
    seeds = 10 if wanted.full or part == "folds" else 5
    return [(part, seed) for seed in range(1 if wanted.rows else seeds)]


def show(part, report, found, curves):
    """Report the tables and bars of a part; store the curves for the figures."""
    members = sorted(map(int, found[0]["errors"]["random"]))
    singles = [own["single"] for own in found]
    single = fmean(singles)
    errors = {name: over_seeds([own["errors"][name] for own in found], members) for name in METHODS}
    curves[part] = {
        "members": members,
        "single": single,
        "errors": errors,
        "choices": [{key: own[key] for key in ("C", "choices", "chosen")} for own in found],
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
    chosen = sorted({name for own in found for name in own["chosen"][OURS].values()})
    text = (
        f"Error of the best proposal of M, mean and standard deviation over {len(found)} seeds, "
        f"and on which share of the test samples the least useful of {members[at]} members is the "
        "best and no other as good, for the seed where that is least. Error of the single SSVM: "
        f"{single:.4f} ± {pstdev(singles):.4f}. Chosen on validation data: {', '.join(chosen)}."
    )
    report.table(TITLES[part], text, [*header, "least useful"], rows)
    rows = [
        [name, *(f"{a:.3f}, {b:.3f}" for a, b in zip(own["mean"], own["worst"], strict=True))]
        for name, own in errors.items()
    ]
    text = "Error of the members: their mean, and the worst of them."
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
    several = [k for k, m in enumerate(members) if m > 1]
    ours = errors[OURS]["pick"]
    worst = max(ours[k] / single for k in several)
    report.bar(f"{part}: Coulomb below the single SSVM for every M", worst, worst < 1, " times")
    for rival in RIVALS:
        theirs = errors[rival]["pick"]
        worst = max(ours[k] / theirs[k] for k in several)
        report.bar(f"{part}: Coulomb below {rival} for every M", worst, worst < 1, " times")
    # With two test images, six members cannot all be the best sometimes.
    at = several[-1] if part != "folds" else members.index(2)
    least = errors[OURS]["least"][at]
    report.bar(f"{part}: each of {members[at]} members is the best sometimes", least, least > 0)


def run(part, seed, data, rows, full):
    """Return the errors of all methods on the test data of one seed."""
    from widemargin.structured import FrankWolfeSSVM

    task = Task(part, seed, data, rows, full)
    tried = {}
    for C in task.costs:
        learner = FrankWolfeSSVM(task.model(), C=C, tol=0.02, max_iter=task.passes)
        tried[C] = learner.fit(*task.train)
    learner = max(tried.values(), key=lambda own: own.score(*task.valid))
    task.C, task.w, task.objective = learner.C, learner.w, learner.objective_
    errors, choices = {}, {}
    for name in (*COULOMB, *RANDOM, *OTHERS):
        if name == "Coulomb stochastic" and len(task.train[0]) == 1:
            # One random sample of one is all of them.
            errors[name], choices[name] = errors["Coulomb all"], choices["Coulomb all"]
            continue
        choices[name] = {m: choose(task, name, m, choices) for m in task.choose_at}
        errors[name] = curve(task, name, choices[name])
    chosen = {}
    for kind, ways in CHOSEN.items():
        best = {m: min(ways, key=lambda name: choices[name][m][0]) for m in task.choose_at}
        errors[kind] = {m: errors[best[chosen_at(task, m)]][m] for m in task.members}
        chosen[kind] = best
    # The first output of DivMBest is that of the single SSVM, summed in the same order.
    single = errors["DivMBest"][1]["pick"]
    kept = {"C": task.C, "choices": choices, "chosen": chosen}
    return {"single": single, "errors": errors, **kept}


def choose(task, name, m, choices):
    """Return the least error of ``m`` members on validation data, and its strength."""
    kind, *way = name.split()
    values = STRENGTHS[kind]
    if way == ["in", "turn"]:
        spread = choices["Coulomb kept" if kind == "Coulomb" else "random"][m][1]
        values = [(spread, diversity) for diversity in (0.0, *STRENGTHS["DivMBest"])]
    picks = {value: propose(task, name, value, m, task.valid).min(axis=0).sum() for value in values}
    return min((float(error), value) for value, error in picks.items())


def chosen_at(task, m):
    """Return the number of members for which the strength for ``m`` was selected."""
    return task.choose_at[0] if m < 4 else task.choose_at[-1]


def curve(task, name, choice):
    """Return the errors on test data for each number of members."""
    import numpy as np

    most = np.array([task.model_.max_loss(y) for y in task.test[1]]).sum()
    found = {}
    for m in task.members:
        losses = propose(task, name, choice[chosen_at(task, m)][1], m, task.test)
        best = losses == losses.min(axis=0)
        alone = best & (best.sum(axis=0) == 1)
        found[m] = {
            "pick": float(losses.min(axis=0).sum() / most),
            "mean": float(losses.mean(axis=0).sum() / most),
            "worst": float(losses.sum(axis=1).max() / most),
            "least": float(alone.mean(axis=1).min()),
        }
    return found


def propose(task, name, value, m, samples):
    """Return the losses of ``m`` proposals for each sample."""
    import numpy as np

    from widemargin.structured import batch_diverse_predictions

    if name == "DivMBest":
        X, Y = samples
        found = batch_diverse_predictions(task.model_, task.w, X, m, value)
        pairs = zip(Y, found, strict=True)
        return np.array([[task.model_.loss(y, own) for own in outputs] for y, outputs in pairs]).T
    if name.endswith("in turn"):
        base = "Coulomb kept" if name.startswith("Coulomb") else "random"
        return task.fitted(base, value[0], m).member_losses(*samples, diversity=value[1])
    return task.fitted(name, value, m).member_losses(*samples)


STRENGTHS = {
    "Coulomb": (0.1, 1.0, 10.0),
    "random": (0.1, 0.3, 1.0, 3.0),
    "DivMBest": (0.03, 0.1, 0.3, 1.0),
    "MCL": (1.0, 3.0),
    "DivMCL": tuple(product((0.3, 1.0), (1.0, 3.0))),
}
"""Alpha of Coulomb relative to `alpha="auto"`, C of MCL relative to that of the single SSVM, the
diversity of DivMCL and such a C, and the corresponding parameters of the others."""


class Task:
    """Training, validation and test data of one seed."""

    def __init__(self, part, seed, data, rows, full):
        import numpy as np

        from widemargin.structured import ChainCRF, GraphCRF, GridCRF

        self.seed, self.fits = seed, {}
        self.members = tuple(range(1, 11)) if full else (1, 2, 4, 6, 10)
        self.choose_at, self.passes = (2, 6), 60
        self.steps, self.rounds = (200, 10) if full else (50, 3)
        random = np.random.default_rng(seed)
        if part.startswith("grid"):
            make = few_colors if part == "grid9" else many_colors
            self.train, self.valid, self.test = make(random, 6 if rows else 20)
            self.costs, self.make = (0.01, 0.1), lambda: GridCRF(n_states=2)
        elif part.startswith("letters"):
            n = min(int(part[len("letters") :]), rows or 10_000)
            self.train, self.valid, self.test = words(
                data, random, n, rows or (2000 if full else 300)
            )
            self.costs, self.make = (0.03, 0.1, 0.3), lambda: ChainCRF(n_states=26)
            if n > 100:
                self.choose_at, self.steps, self.rounds, self.passes = (2,), 20, 2, 11
                self.members = self.members if full else (1, 2, 6)
        else:
            sizes = (1, 2, 2) if part == "folds" else (1, 3, rows or (324 if full else 40))
            self.train, self.valid, self.test = horses(data, seed, sizes)
            self.costs, self.make = (0.001, 0.01), lambda: GraphCRF(n_states=2)
        if rows:
            self.members, self.steps, self.rounds, self.passes = (1, 2, 6), 10, 2, 10
        self.model_ = self.model()
        self.model_.initialize(*self.train)

    def model(self):
        return self.make()

    def fitted(self, name, value, m):
        """Return the ensemble, trained once."""
        if (name, value, m) not in self.fits:
            self.fits[name, value, m] = self.ensemble(name, value, m).fit(*self.train)
        return self.fits[name, value, m]

    def ensemble(self, name, value, m):
        from widemargin.structured import (
            CoulombSSVM,
            DiverseMultipleChoiceSSVM,
            MultipleChoiceSSVM,
            PerturbedSSVM,
        )
        from widemargin.structured.ensembles.coulomb import default_repulsion

        kind, *rest = name.split()
        common = {"C": self.C, "tol": 0.02, "random_state": self.seed, "max_iter": self.passes}
        if kind == "Coulomb":
            anchored = rest[0] in ("anchored", "kept")
            return CoulombSSVM(
                self.model(), m, value * default_repulsion(self.objective, len(self.w)),
                assignment="all" if anchored else rest[0],
                solver="anchored" if anchored else "subgradient",
                n_steps=self.rounds if anchored else self.steps,
                keep_single=rest[0] == "kept", **common,
            )  # fmt: skip
        if kind == "random":
            directions = "outputs" if rest else "weights"
            return PerturbedSSVM(self.model(), m, value, directions=directions, **common)
        if kind == "MCL":
            return MultipleChoiceSSVM(self.model(), m, **{**common, "C": value * self.C})
        diversity, factor = value
        return DiverseMultipleChoiceSSVM(
            self.model(), m, diversity, **{**common, "C": factor * self.C}
        )


def few_colors(random, n_test):
    """Return images of discs that differ from the background in two colors.

    In the training image both colors differ equally; in the others the light has another color,
    between those two.
    """
    import numpy as np

    def image(angle):
        labels = discs(random)
        colors = 2.1 * np.multiply.outer(labels - 0.5, [np.cos(angle), np.sin(angle)])
        colors += random.normal(size=colors.shape)
        return np.concatenate([colors, np.ones((*labels.shape, 1))], axis=-1), labels

    angles = random.uniform(-np.pi / 4, 3 * np.pi / 4, size=5 + n_test)
    return split(image(np.pi / 4), [image(angle) for angle in angles])


def many_colors(random, n_test):
    """Return images of discs with nineteen colors, a different mixture in each image."""
    import numpy as np

    def image(shown):
        labels = discs(random)
        colors = np.multiply.outer(labels - 0.5, shown)
        colors += random.normal(size=colors.shape)
        return np.concatenate([colors, np.ones((*labels.shape, 1))], axis=-1), labels

    first = np.full(19, 2.1 / np.sqrt(19))
    others = first + 0.6 * random.normal(size=(5 + n_test, 19))
    others *= 2.1 / np.linalg.norm(others, axis=1, keepdims=True)
    return split(image(first), [image(shown) for shown in others])


def discs(random, size=16):
    import numpy as np

    row, column = np.indices((size, size))
    labels = np.zeros((size, size), dtype=int)
    for _ in range(3):
        place = random.uniform(2, size - 2, size=2)
        inside = (row - place[0]) ** 2 + (column - place[1]) ** 2
        labels[inside < random.uniform(2.5, size / 4) ** 2] = 1
    return labels


def split(first, others):
    parts = [first], others[:5], others[5:]
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


def horses(data, seed, sizes):
    """Return superpixel graphs, scaled by the training image.

    With five images in all, seeds 0 to 4 are the folds of one group, 5 to 9 of the next.
    """
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    raw = load(data, "weizmann_horses")
    if sum(sizes) == 5:
        order = np.random.default_rng(seed // 5).permutation(len(raw["X"]))[:5]
        order = np.roll(order, -(seed % 5))
    else:
        order = np.random.default_rng(seed).permutation(len(raw["X"]))
    ends = np.cumsum(sizes)
    parts = order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] : ends[2]]
    scaler = StandardScaler().fit(np.concatenate([raw["X"][i][0] for i in parts[0]]))

    def graph(i):
        nodes, edges = raw["X"][i][:2]
        scaled = np.clip(scaler.transform(nodes), -5.0, 5.0)
        return np.column_stack([scaled, np.ones(len(nodes))]), edges

    return [([graph(i) for i in part], [raw["y"][i].astype(int) for i in part]) for part in parts]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
