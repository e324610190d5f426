"""A failed operation leaves the object unchanged."""

from types import SimpleNamespace

import pytest

from widemargin._base.transactions import unchanged_by_failure


def change_and_fail(thing):
    with unchanged_by_failure(thing):
        thing.kept, thing.new = 3, 4
        del thing.dropped
        raise KeyboardInterrupt


def test_attributes_come_back_after_a_failure_and_new_ones_go():
    thing = SimpleNamespace(kept=1, dropped=2)
    with pytest.raises(KeyboardInterrupt):
        change_and_fail(thing)
    assert vars(thing) == {"kept": 1, "dropped": 2}


def test_what_was_done_stays_without_one():
    thing = SimpleNamespace(kept=1)
    with unchanged_by_failure(thing):
        thing.new = 2
    assert vars(thing) == {"kept": 1, "new": 2}
