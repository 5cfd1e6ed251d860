"""The controls, and the self-test that is made of them."""
