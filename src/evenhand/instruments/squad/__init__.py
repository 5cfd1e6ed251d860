"""SQuAD v2: questions about passages, half of which hold no answer (Rajpurkar et al. 2018). Here it
checks that a method which repairs texts still answers."""
