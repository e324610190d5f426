"""Make the links of the README absolute when a release is built, and name the project's pages.

The package index shows the README without the files beside it, so that relative images and links
are broken there. A continuous integration server names the repository and the tag in environment
variables; elsewhere the README stays as it is, and there are no project URLs.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


class ReleaseMetadata(MetadataHookInterface):
    """Metadata that depend on where the release is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README and the project URLs."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = repository_url(os.environ)
        if repository is not None:
            metadata["urls"] = project_urls(repository)
            text = absolute_links(text, repository, os.environ.get("GITHUB_REF_NAME", "main"))
        else:
            metadata["urls"] = {}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def repository_url(environment: Mapping[str, str]) -> str | None:
    """Return the address of the repository, None outside a continuous integration server."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY")
    parts = [environment.get(name) for name in names]
    return "/".join(part for part in parts if part) if all(parts) else None


def project_urls(repository: str) -> dict[str, str]:
    """Return the project URLs by name."""
    return {
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }


def absolute_links(text: str, repository: str, ref: str) -> str:
    """Return Markdown in which links and images of the repository are absolute, at one version."""

    def replaced(match: re.Match) -> str:
        image, label, path = match.groups()
        kind = "raw" if image else "blob"
        return f"{image}[{label}]({repository}/{kind}/{ref}/{path})"

    return LINK.sub(replaced, text)
