"""These scripts let other tools score the cases of the suite, each run by the Python that has the
tool: `python ADAPTER FOLDER OUT`. They import nothing of evenhand."""
