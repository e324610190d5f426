"""Compiled access to subsets of the rows of a sparse matrix."""

import numpy as np

from widemargin._base.jit import compiled


@compiled
def gather_rows(data, indices, indptr, rows, n_features):
    """Copy rows of a CSR matrix and number the features that occur in them.

    Returns the values, the numbers of the features, the starts of the rows, and the features, in
    increasing order. Work is in proportion to the entries of the rows, or to ``n_features`` where
    that is less than sorting them.
    """
    starts = np.empty(len(rows) + 1, np.uint32)
    starts[0] = 0
    for r in range(len(rows)):
        starts[r + 1] = starts[r] + (indptr[rows[r] + 1] - indptr[rows[r]])
    total = np.int64(starts[len(rows)])
    values, columns = np.empty(total, data.dtype), np.empty(total, np.uint32)
    for r in range(len(rows)):
        first, length = np.int64(indptr[rows[r]]), np.int64(starts[r + 1] - starts[r])
        for k in range(length):
            values[starts[r] + k] = data[first + k]
            columns[starts[r] + k] = indices[first + k]
    if total * np.log2(total + 2.0) < n_features:
        features = np.unique(columns)
        for k in range(total):
            columns[k] = np.searchsorted(features, columns[k])
    else:
        number = np.zeros(n_features, np.uint32)
        for k in range(total):
            number[columns[k]] = 1
        count = 0
        for feature in range(n_features):
            if number[feature] == 1:
                number[feature] = count
                count += 1
            else:
                number[feature] = n_features
        features = np.empty(count, np.uint32)
        for feature in range(n_features):
            if number[feature] < n_features:
                features[number[feature]] = feature
        for k in range(total):
            columns[k] = number[columns[k]]
    return values, columns, starts, features
