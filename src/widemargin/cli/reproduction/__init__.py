"""Reproduction: the tables of the papers beside ours, on one page and in one JSON file."""

from widemargin.cli.reproduction.page import PAPERS, reproduce

__all__ = ["PAPERS", "reproduce"]
