"""What `train_support_judge.py` is made of."""
