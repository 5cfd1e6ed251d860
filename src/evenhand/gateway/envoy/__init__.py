"""The gateway behind Envoy: an external processor, and the bootstrap of an Envoy that asks it."""
