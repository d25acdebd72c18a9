"""How the documentation for Python is built: ``sphinx-build -W docs OUT``, with the package installed."""

project = "Forebay"
copyright = "the authors of Forebay"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "Forebay for Python"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
suppress_warnings = ["docutils"]
exclude_patterns = ["_build"]
