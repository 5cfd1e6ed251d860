"""SQuAD v2: questions about passages, half of which hold no answer (Rajpurkar et al. 2018). Here it
checks that a method which repairs texts still answers."""

from evenhand.instruments.squad.answers import with_answers
from evenhand.instruments.squad.data import SquadData, card
from evenhand.instruments.squad.sample import Sampling, sample
from evenhand.instruments.squad.source import SquadSource

__all__ = ["Sampling", "SquadData", "SquadSource", "card", "sample", "with_answers"]
