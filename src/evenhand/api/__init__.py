"""The Python functions: one module for each group of commands, each function a coroutine.

A function of `api` checks what it is given (`inputs`), makes one call of `experiments` and returns
a finding. Those that run something end in `**settings: Unpack[RunOptions]`
(`experiments/settings.py`) and are given to `show_settings`. `evenhand.aio` lists all of
them; `evenhand` has each without `await` (`sync.waiting_for`).
"""
