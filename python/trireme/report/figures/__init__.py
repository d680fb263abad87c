"""The figures of the page, one file each; `theme.py` holds colours and form."""
