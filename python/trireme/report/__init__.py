"""One HTML page about a run: `python -m trireme.report RUN --out FILE`, or `trireme report RUN`.

A run's folder is read (`run.py`) into plain data, that becomes tables (`tables.py`) and figures
(`figures/`), those a page (`page.py`). What is missing or damaged becomes a note on the page.
"""
