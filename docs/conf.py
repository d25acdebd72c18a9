"""How the documentation is built: ``sphinx-build -W docs OUT``, with the package installed."""

from importlib.util import find_spec

project = "Forebay"
copyright = "the authors of Forebay"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "Forebay"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]
# Links to headings work as they do on GitHub.
myst_heading_anchors = 3
suppress_warnings = ["docutils"]
exclude_patterns = ["_build"]
