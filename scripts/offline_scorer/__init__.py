"""What `train_offline_scorer.py` is made of."""
