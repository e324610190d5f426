"""Included and generated data as tables."""

from inspect import getdoc

import numpy as np
import pandas as pd

from widemargin.cli.main import CommandError
from widemargin.datasets import fetch_dataset, load_satimage, load_vowel, load_yeast
from widemargin.datasets.downloads import SOURCES

_SPLIT = {"satimage": load_satimage, "vowel": load_vowel}
_VOCABULARY = (
    "please could question thanks invoice setting update slow help works again",
    "unacceptable cancel lawyer refund terrible immediately never third complaint",
    "my the it is since connection bill with device was not again call",
)


def describe() -> dict[str, str]:
    """Return one line about each data set, by name."""
    functions = {**_SPLIT, "yeast": load_yeast, "tickets": make_tickets}
    included = {name: (getdoc(f) or "").split("\n")[0] for name, f in functions.items()}
    return included | dict.fromkeys(SOURCES, "Downloaded by fetch_dataset.")


def table(name: str, subset: str, seed: int) -> pd.DataFrame:
    """Return a data set.

    Parameters
    ----------
    name : str
        One of those that `describe` lists.
    subset : str
        'all' or, if there is an official split, 'train' or 'test'.
    seed : int
        Seed of generated data.

    Returns
    -------
    table : DataFrame
    """
    if name not in describe():
        raise CommandError(f"There is no data set {name!r}.", f"Use {', '.join(describe())}.")
    if name in SOURCES:
        return _downloaded(name, subset)
    if name in _SPLIT:
        return _with_names(_SPLIT[name](subset=subset, as_frame=True))
    if subset != "all":
        raise CommandError(f"{name} has no official split.", "Leave --subset out.")
    return make_tickets(4000, seed) if name == "tickets" else _with_names(load_yeast(as_frame=True))


def _downloaded(name: str, subset: str) -> pd.DataFrame:
    """Return a downloaded data set, if its features are an array."""
    dataset = fetch_dataset(name)
    subsets = [key for key in ("train", "test") if f"X_{key}" in dataset and subset in ("all", key)]
    if "X" in dataset and subset == "all":
        pairs = [(dataset.X, dataset.y)]
    elif subsets:
        pairs = [(dataset[f"X_{key}"], dataset[f"y_{key}"]) for key in subsets]
    else:
        raise CommandError(f"{name} has no subset {subset!r}.", "Leave --subset out.")
    if not all(isinstance(array, np.ndarray) for pair in pairs for array in pair):
        raise CommandError(
            f"{name} is not a table of numbers.", "Use widemargin.datasets.fetch_dataset in Python."
        )
    X, y = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    columns = [f"feature_{k}" for k in range(1, X.shape[1] + 1)]
    return pd.DataFrame(X, columns=columns).assign(target=y)


def make_tickets(n_samples: int, seed: int) -> pd.DataFrame:
    """Generate support tickets: text, categories, numbers, missing values; some escalate.

    Parameters
    ----------
    n_samples : int
        Number of tickets.
    seed : int
        Seed. Whether a ticket escalates depends on all columns but the channel and the contract
        value, and on luck.

    Returns
    -------
    tickets : DataFrame
    """
    rng = np.random.default_rng(seed)
    n = n_samples
    angry, hours, value = rng.random(n) < 0.3, rng.gamma(2.0, 12.0, n), rng.lognormal(4, 1, n)
    product = rng.choice(["router", "phone", "television", "backup"], n, p=[0.4, 0.3, 0.2, 0.1])
    score = 3.5 * angry + 0.08 * (hours - 24) + 1.5 * (product == "backup") - 2.0
    escalated = 0.4 * rng.logistic(size=n) < score
    calm, upset, common = (np.array(line.split()) for line in _VOCABULARY)
    texts = [
        " ".join(rng.permutation([*rng.choice(common, 7), *rng.choice(upset if a else calm, 3)]))
        for a in angry
    ]
    channel = pd.Series(rng.choice(["mail", "telephone", "chat"], n))
    return pd.DataFrame(
        {
            "message": texts,
            "product": product,
            "channel": channel.where(rng.random(n) < 0.9),
            "waiting_hours": np.where(rng.random(n) < 0.1, np.nan, hours.round(1)),
            "contract_value": np.where(rng.random(n) < 0.2, np.nan, value.round(2)),
            "outcome": np.where(escalated, "escalated", "resolved"),
        }
    )


def _with_names(data: object) -> pd.DataFrame:
    """Return a table whose target are names."""
    frame, names = data.frame, data.target_names  # type: ignore[attr-defined]
    _, codes = np.unique(frame["target"], return_inverse=True)
    return frame.assign(target=np.asarray(names)[codes])
