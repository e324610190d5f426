"""The shared memory of kernel values: what it serves is right, and it keeps to its budget."""

import gc
import weakref
from itertools import combinations
from sys import getswitchinterval, setswitchinterval
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from widemargin.kernels import GramCache, KernelGram, MatrixGram, kernel_function
from widemargin.kernels.cache import RowCache

RBF = kernel_function("rbf", gamma=0.5)
ALL = slice(None)
SINGLE_ERROR = 1e-5


def rows_of(size, seed=0):
    return np.random.default_rng(seed).standard_normal((size, 3))


def gram_of(size):
    return KernelGram(RBF, rows_of(size))


def asked(gram, index):
    """The rows themselves, in the order asked for."""
    array, places = gram.rows(np.asarray(index))
    return array[places]


@pytest.fixture
def entries(monkeypatch):
    """How many kernel values were computed, call by call."""
    counts = []
    original = KernelGram.block

    def block(self, *arguments, **options):
        out = original(self, *arguments, **options)
        counts.append(out.size)
        return out

    monkeypatch.setattr(KernelGram, "block", block)
    return counts


@pytest.mark.parametrize("budget", [0, 5_000, 20_000, 1 << 20])
@pytest.mark.parametrize("groups", [(0,), (2,), (0, 1), (1, 3), (0, 1, 2, 3), ()])
def test_the_matrix_of_a_union_of_groups_is_the_direct_one(budget, groups):
    gram, sizes = gram_of(40), [10, 5, 20, 5]
    cache = GramCache(gram, budget, sizes, jobs=4)
    union = cache.of(*groups)
    starts = np.cumsum([0, *sizes])
    named = groups or range(4)
    index = np.concatenate([np.arange(starts[g], starts[g + 1]) for g in named])
    matrix = gram.block(ALL)[np.ix_(index, index)]
    for _ in range(2):  # the second time from memory
        np.testing.assert_array_equal(union.block(ALL), matrix)
        assert cache.nbytes <= budget
    np.testing.assert_allclose(union.diagonal(), matrix.diagonal(), rtol=1e-13)
    some, others = np.array([3, 0]), np.array([1, 4, 2])
    np.testing.assert_array_equal(union.block(some, others), matrix[np.ix_(some, others)])
    np.testing.assert_array_equal(union.block(ALL, others), matrix[:, others])
    np.testing.assert_allclose(asked(union, some), matrix[some], atol=SINGLE_ERROR)
    assert union.size == len(index)
    assert union.positive_semidefinite


def test_groups_come_in_the_order_in_which_they_are_named():
    gram = gram_of(12)
    index = np.r_[4:12, 0:4]
    matrix = gram.block(ALL)[np.ix_(index, index)]
    for budget in (0, 1 << 20):
        union = GramCache(gram, budget, [4, 8]).of(1, 0)
        np.testing.assert_array_equal(union.block(ALL), matrix)
        np.testing.assert_allclose(union.diagonal(), matrix.diagonal(), rtol=1e-13)
        np.testing.assert_allclose(asked(union, [1, 9]), matrix[[1, 9]], atol=SINGLE_ERROR)


def test_sizes_of_groups_must_add_up():
    with pytest.raises(ValueError, match="group_sizes must add up to 12 samples, got 11"):
        GramCache(gram_of(12), 1000, [4, 7])


def test_pairs_of_groups_compute_every_value_once(entries):
    sizes = [6, 7, 8, 9]
    cache = GramCache(gram_of(30), 8 * 30**2, sizes)
    for pair in combinations(range(4), 2):
        cache.of(*pair).block(ALL)
    assert sum(entries) == 30**2


def test_pairs_of_groups_share_blocks_where_the_whole_does_not_fit(entries):
    sizes = [6, 7, 8, 9]
    cache = GramCache(gram_of(30), 8 * 30**2 - 1, sizes)
    for _ in range(2):
        for pair in combinations(range(4), 2):
            cache.of(*pair).block(ALL)
    assert sum(entries) == sum(a * b for a, b in combinations(sizes, 2)) + sum(a * a for a in sizes)


def test_problems_over_all_rows_share_the_rows_they_ask_for(entries):
    cache = GramCache(gram_of(20), 1 << 20, shared=True)
    first, second = cache.of(), cache.of()
    asked(first, np.arange(8))
    asked(second, np.arange(12))
    assert sum(entries) == 12 * 20


def test_blocks_used_longest_ago_make_room(entries):
    cache = GramCache(gram_of(30), 2 * 8 * 100, [10, 10, 10])
    cache.between(0, 1)
    cache.between(0, 2)
    cache.between(0, 1)
    cache.between(1, 2)
    assert len(entries) == 3
    cache.between(0, 1)
    assert len(entries) == 3
    cache.between(0, 2)
    assert len(entries) == 4
    assert cache.nbytes == cache.cache_bytes


def test_a_given_matrix_takes_no_memory():
    matrix = gram_of(15).block(ALL)
    cache = GramCache(MatrixGram(matrix, positive_semidefinite=False), 0, [5, 10])
    np.testing.assert_array_equal(cache.of(0, 1).block(ALL), matrix)
    np.testing.assert_array_equal(cache.of(1).block(ALL), matrix[5:, 5:])
    np.testing.assert_array_equal(asked(cache.of(0, 1), [3, 9]), matrix[[3, 9]])
    np.testing.assert_array_equal(asked(cache.of(0), [3, 1]), matrix[[3, 1], :5])
    union = cache.of()
    union.use_float64()
    np.testing.assert_array_equal(asked(union, [3, 9]), matrix[[3, 9]])
    assert not union.positive_semidefinite
    assert cache.nbytes == 0


def test_rows_are_float64_after_use_float64():
    gram = gram_of(30)
    for groups in ((0, 1), (0,), (1,)):
        union = GramCache(gram, 8 * 30 * 12, [10, 20]).of(*groups)
        matrix = union.block(ALL)
        index = np.array([7, 0, 3])
        assert asked(union, index).dtype == np.float32
        union.use_float64()
        assert asked(union, index).dtype == np.float64
        np.testing.assert_array_equal(asked(union, index), matrix[index])


def test_a_subset_serves_the_rows_left():
    gram = gram_of(30)
    cache = GramCache(gram, 4 * 30 * 10, [10, 20])
    union = cache.of(0, 1)
    asked(union, [0, 1])
    index = np.array([29, 3, 4, 11, 25])
    subset = union.subset(index)
    matrix = gram.block(index, index)
    assert subset.size == 5
    np.testing.assert_array_equal(subset.block(ALL), matrix)
    np.testing.assert_allclose(subset.diagonal(), matrix.diagonal(), rtol=1e-13)
    np.testing.assert_allclose(asked(subset, [4, 1]), matrix[[4, 1]], atol=SINGLE_ERROR)
    smaller = subset.subset(np.array([4, 0]))
    np.testing.assert_allclose(asked(smaller, [0, 1]), matrix[[4, 0]][:, [4, 0]], atol=SINGLE_ERROR)
    np.testing.assert_allclose(asked(union, [7]), gram.block(ALL)[[7]], atol=SINGLE_ERROR)
    assert cache.nbytes <= cache.cache_bytes


def test_memory_for_rows_is_given_back():
    cache = GramCache(gram_of(30), 4 * 30 * 12, [10, 20])
    union = cache.of(0, 1)
    asked(union, [1, 2])
    assert 0 < cache.nbytes <= cache.cache_bytes
    del union
    gc.collect()
    assert cache.nbytes == 0


def test_memory_is_counted_while_other_threads_give_up_rows():
    cache, ended, failures = GramCache(gram_of(8), 1 << 20), Event(), []

    def count():
        try:
            while not ended.is_set():
                cache.nbytes  # noqa: B018
        except RuntimeError as error:  # the set of caches changed size during iteration
            failures.append(error)

    interval, thread = getswitchinterval(), Thread(target=count)
    setswitchinterval(1e-6)
    thread.start()
    for _ in range(200):
        rows = [cache.row_cache(cache.gram) for _ in range(20)]
        del rows
    setswitchinterval(interval)
    ended.set()
    thread.join()
    assert failures == []
    assert cache.nbytes == 0


def test_a_cache_whose_rows_are_shared_dies_with_its_last_user():
    cache = GramCache(gram_of(30), 4 * 30 * 12, shared=True)
    asked(cache.of(0), [1, 2])
    gone = weakref.ref(cache)
    del cache
    gc.collect()
    assert gone() is None


def test_the_whole_matrix_and_rows_keep_to_one_budget():
    cache = GramCache(gram_of(30), 8 * 30**2, [10, 20])
    cache.of(0).block(ALL)
    union = cache.of(0, 1)
    np.testing.assert_allclose(
        asked(union, np.arange(union.max_rows)),
        gram_of(30).block(ALL)[: union.max_rows],
        atol=SINGLE_ERROR,
    )
    assert cache.nbytes <= cache.cache_bytes


def test_rows_in_use_are_not_overwritten_by_another_problem():
    gram = gram_of(40)
    cache = GramCache(gram, 4 * 40 * 10, shared=True, jobs=2)
    matrix = gram.block(ALL)
    first, second = cache.of(), cache.of()
    index = np.arange(min(4, first.max_rows))
    array, places = first.rows(index)
    for start in range(10, 40, 4):
        asked(second, np.arange(start, start + 2))
    np.testing.assert_allclose(array[places], matrix[index], atol=SINGLE_ERROR)


@pytest.mark.parametrize("budget", [4 * 60 * 30, 8 * 60 * 40, 1 << 20])
def test_threads_are_served_right_values_at_once(budget):
    gram = gram_of(60)
    cache = GramCache(gram, budget, [20, 30, 10], shared=True, jobs=4)
    matrix, starts = gram.block(ALL), [0, 20, 50, 60]
    barrier, failures = Barrier(4), []

    def work(seed):
        generator = np.random.default_rng(seed)
        barrier.wait()
        for _ in range(30):
            groups = sorted(generator.permutation(3)[: generator.integers(1, 4)].tolist())
            own = np.concatenate([np.arange(starts[g], starts[g + 1]) for g in groups])
            expected = matrix[np.ix_(own, own)]
            union = cache.of(*groups)
            if not np.array_equal(union.block(ALL), expected):
                failures.append(f"block of {groups}")
            for _ in range(5):
                index = generator.permutation(len(own))[: min(union.max_rows, 6)]
                if not np.allclose(asked(union, index), expected[index], atol=SINGLE_ERROR):
                    failures.append(f"rows of {groups}")

    threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@settings(max_examples=200)
@given(st.data())
def test_a_row_cache_serves_any_sequence_of_requests(data):
    size = data.draw(st.integers(1, 12), "size")
    gram = gram_of(size).as_float32(0)
    matrix = gram.block(ALL)
    ring = RowCache(gram, data.draw(st.integers(0, 14), "places"))
    assert min(2, size) <= ring.max_rows <= size
    assert ring.nbytes == 4 * ring.max_rows * size
    for _ in range(data.draw(st.integers(1, 12), "requests")):
        order = data.draw(st.permutations(range(size)), "order")
        index = np.array(order[: data.draw(st.integers(0, ring.max_rows), "count")], dtype=int)
        array, places = ring.rows(index)
        np.testing.assert_array_equal(array[places], matrix[index])


def test_a_row_cache_that_wraps_around_keeps_what_is_asked_for():
    gram = gram_of(30).as_float32(0)
    ring = RowCache(gram, 8)
    for index in ([0, 1, 2, 3, 4], [5, 6, 7], [8, 9, 10, 11, 12], [20, 21, 22, 5]):
        np.testing.assert_array_equal(asked(ring, index), gram.block(ALL)[index])


def test_rows_that_are_kept_are_not_computed_again(entries):
    ring = RowCache(gram_of(20).as_float32(0), 10)
    for index in ([3, 4, 5], [5, 3], [4, 5, 6]):
        ring.rows(np.array(index))
    assert sum(entries) == 4 * 20


class CacheMachine(RuleBasedStateMachine):
    """Problems that ask for blocks and rows in any order, take subsets, use float64 and go."""

    @initialize(
        sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4),
        budget=st.integers(0, 8000),
        shared=st.booleans(),
    )
    def build(self, sizes, budget, shared):
        gram = gram_of(sum(sizes))
        self.matrix = gram.block(ALL)
        self.starts = np.cumsum([0, *sizes])
        self.cache = GramCache(gram, budget, sizes, shared=shared)
        self.open = []

    @rule(data=st.data())
    def come(self, data):
        numbers = range(len(self.starts) - 1)
        groups = sorted(data.draw(st.sets(st.sampled_from(numbers), min_size=1)))
        index = np.concatenate([np.arange(self.starts[g], self.starts[g + 1]) for g in groups])
        self.open.append((self.cache.of(*groups), index, SINGLE_ERROR))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def ask_for_the_matrix(self, data):
        union, index, _ = data.draw(st.sampled_from(self.open))
        np.testing.assert_array_equal(union.block(ALL), self.matrix[np.ix_(index, index)])

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def ask_for_rows(self, data):
        union, index, error = data.draw(st.sampled_from(self.open))
        most = min(union.max_rows, union.size)
        some = np.array(data.draw(st.permutations(range(union.size)))[:most])
        expected = self.matrix[np.ix_(index[some], index)]
        np.testing.assert_allclose(asked(union, some), expected, rtol=0, atol=error)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def subset(self, data):
        union, index, _ = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        some = np.array(sorted(data.draw(st.sets(st.integers(0, len(index) - 1), min_size=1))))
        self.open.append((union.subset(some), index[some], SINGLE_ERROR))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def use_float64(self, data):
        union, index, _ = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        union.use_float64()
        self.open.append((union, index, 0.0))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def go(self, data):
        self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))

    @invariant()
    def the_budget_is_kept(self):
        if hasattr(self, "cache"):
            # Two rows are kept even so: for all problems together, and for each of them.
            rows = 2 * 8 * len(self.matrix) * (1 + len(self.open))
            assert self.cache.nbytes <= self.cache.cache_bytes + rows


CacheMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=15)
TestCacheInAnyOrder = CacheMachine.TestCase
