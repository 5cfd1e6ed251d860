"""These numbers were recorded before the reports were rewritten, and must stay what they were.

    kept/        run folders of format 2 and inputs of audits, over texts made up for them
    recorded/    what measure, compare, frontier, plan and the audits said of them, flat: one JSON
                 file per instrument
    adapter.py   how the code of today is asked for these numbers: the only file that changes when
                 the code moves
    flat.py      a nested report as flat entries
    made_up.py, made_runs.py, made_audits.py, make.py   how `kept/` was made

The runs were made with evenhand 0.1 at commit 6c1384d. No record of a data set is in them: the
items have the tags that the sources of the benchmarks write, over sentences of our own. They are
not made again: that an old folder is still read is part of the test. To make others, say, of
another size (from `tests/`; `PYTHONPATH=../src`):

    python -m same_numbers.make ANOTHER_FOLDER

A number that is meant to change is recorded anew, and the difference is read line by line:

    python -m same_numbers.record [INSTRUMENT ...] && git diff same_numbers/recorded

Recorded are also the numbers of known defects, so that their end shows as a difference and no other
does: `compare` gives p = 1 to a change without any spread (bbq, `always_unknown →
always_stereotyped`; frontier, `without any spread`, does not), and takes an accuracy that did not
change for kept (bbq, `default → default`; frontier, `the same accuracy`, does not).
"""
