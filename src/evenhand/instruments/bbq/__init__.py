"""BBQ: 58,492 questions from 343 hand-written templates about nine social dimensions and two of
their intersections (Parrish et al. 2022)."""
