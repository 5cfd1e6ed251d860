"""The same text as one's own, a model's, a rival's: is it called biased (RLDF paper, Figure 1)?"""
