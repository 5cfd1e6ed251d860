"""LLMBar (Zeng et al. 2024): does a judge see which answer follows the instruction?"""
