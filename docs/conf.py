"""Sphinx's settings; ./dev docs builds."""

project = "pagesift"
author = "the pagesift authors"
copyright = "the pagesift authors"  # noqa: A001, the name Sphinx wants

extensions = ["breathe", "myst_parser"]
exclude_patterns = ["requirements.txt"]

breathe_projects = {"pagesift": "../build/docs/xml"}
breathe_default_project = "pagesift"
breathe_default_members = ("members", "undoc-members")
breathe_domain_by_extension = {"hpp": "cpp", "cuh": "cpp"}

myst_heading_anchors = 3
html_theme = "furo"
html_title = "pagesift"

# Names of the standard library, CUDA and Thrust have no page here to link to.
nitpicky = False
