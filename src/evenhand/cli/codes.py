"""The exit codes of all commands. `docs/gate.md` explains them.

| code | every command                                          | `gate` and `monitor`       |
| ---- | ------------------------------------------------------ | -------------------------- |
| 0    | done                                                   | every check passed         |
| 1    | an error, with a message                               | a check failed             |
| 2    | done, but too much is missing or not run; or an        | invalid options            |
|      | invalid command; `train`: nothing was trained          |                            |
| 3    | stopped at a cap, resumable                            | the same                   |
| 4    | `scorers screen apply`: drift, or drift inconclusive   | inconclusive               |
|      | `train`: an improvement of loss or reward is unclear   |                            |
|      | `mitigate`, `answer`: too few answers were accepted    |                            |
| 5    |                                                        | error: no verdict          |
| 130  | stopped by a signal, resumable                         | the same                   |
"""

ERROR = 1
FAILED = 1  # only gate and monitor; they report errors as BROKEN
BELOW_FLOOR = 2
UNFINISHED = 2  # a run that the command reads is not finished
NOTHING = 2  # the training changed no weights
CAPPED = 3
INCONCLUSIVE = 4
NOT_ACCEPTED = 4  # mitigate and answer: the evaluators accept too few answers
BROKEN = 5
STOPPED = 130
