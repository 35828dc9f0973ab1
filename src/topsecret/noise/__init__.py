"""Exact noise: endless bits, computable reals, four noises, and one race between them."""
