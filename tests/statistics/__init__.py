"""Named stats, not statistics: a folder of that name beside conftest.py hides the standard one."""
